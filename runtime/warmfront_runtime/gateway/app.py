"""The client port's application: the routes, and the shape of every answer that is not the engine's."""

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from warmfront_runtime.errors import ClientGoneError, MethodNotAllowedError, RequestError, RouteNotFoundError
from warmfront_runtime.gateway.headers import REQUEST_ID, request_id
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.gateway.proxy import REQUEST_ID_KEY, ROUTES, Proxy, Route

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ALLOWED = ", ".join(f"{route.method} {route.path}" for route in ROUTES)


def client_app(pod: Pod, proxy: Proxy) -> web.Application:
    """The application on the client port."""
    app = web.Application(middlewares=[_answer_errors], client_max_size=pod.bounds.max_request_bytes)
    for route in ROUTES:
        app.router.add_route(route.method, route.path, _handler(proxy, route))
    app.on_response_prepare.append(_finisher(pod))
    return app


def _handler(proxy: Proxy, route: Route) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await proxy.handle(request, route)

    return handle


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    request[REQUEST_ID_KEY] = request_id(request.headers.get(REQUEST_ID))
    try:
        return await handler(request)
    except RequestError as error:
        return _error_response(error)
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        refusal = MethodNotAllowedError(f"{request.path} takes {allowed}, not {request.method}")
        return _error_response(refusal, {"Allow": allowed})
    except web.HTTPNotFound:
        return _error_response(RouteNotFoundError(f"{request.path[:256]} is not served here; what is: {_ALLOWED}"))
    except ClientGoneError:
        return _nobody_there(request)
    except Exception:
        logger.exception("request %s to %s failed in the gateway", request[REQUEST_ID_KEY], request.path)
        return _error_response(RequestError())


def _error_response(error: RequestError, headers: dict[str, str] | None = None) -> web.Response:
    response = web.Response(status=error.status, body=error.body(), content_type="application/json", headers=headers)
    if error.retry_after_seconds is not None:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _nobody_there(request: web.Request) -> web.Response:
    """An answer that is never sent: the connection is cut first, as half an answer may already be on it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


def _finisher(pod: Pod) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """What every answer carries, the engine's and ours."""

    async def finish(request: web.Request, response: web.StreamResponse) -> None:
        response.headers[REQUEST_ID] = request.get(REQUEST_ID_KEY) or request_id(None)
        response.headers["Server"] = "warmfront"
        if pod.lifecycle.draining:
            # A connection that is kept alive would bring the next request here again, however long it is not Ready.
            response.force_close()
            response.headers["Connection"] = "close"

    return finish
