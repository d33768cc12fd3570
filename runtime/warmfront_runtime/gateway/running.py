"""The exchanges under way, so that the end of a drain can end them in an orderly way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Running:
    """Holds the deadline of each exchange."""

    def __init__(self) -> None:
        self._deadlines: set[asyncio.Timeout] = set()
        self.cut = False

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[None]:
        """A block that may take `seconds`, less when `cut_all` is called meanwhile.

        Raises:
            TimeoutError: time is up; `cut` says whether by `cut_all`.
        """
        async with asyncio.timeout(0 if self.cut else seconds) as deadline:
            self._deadlines.add(deadline)
            try:
                yield
            finally:
                self._deadlines.discard(deadline)

    def cut_all(self) -> None:
        """Time is up for all, and for all that follow."""
        self.cut = True
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(now)
