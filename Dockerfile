# The images, one target each: operator, forecaster, gateway, and for tests enginesim.
#
# Build one from the root of the repository: `docker build --target operator .`
# pip's settings, where a machine needs some, come as the build secret `pip.conf` and enter no image.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# Where packages are installed, and what runs them.
FROM ${BASE} AS installer
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python3 -m venv /opt/venv

FROM ${BASE} AS runner
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532

# What we depend on, without the installer and the packages' own tests: most of an image, in a layer that changes seldom.
FROM installer AS operator-dependencies
COPY requirements/operator.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    /opt/venv/bin/pip install --require-hashes --only-binary :all: --requirement /operator.txt \
 && /opt/venv/bin/pip uninstall --yes --quiet setuptools pip && find /opt/venv -depth -type d -name tests -exec rm -rf {} +

FROM installer AS forecaster-dependencies
COPY requirements/forecaster.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    /opt/venv/bin/pip install --require-hashes --only-binary :all: --requirement /forecaster.txt \
 && /opt/venv/bin/pip uninstall --yes --quiet setuptools pip && find /opt/venv -depth -type d -name tests -exec rm -rf {} +

FROM installer AS runtime-dependencies
COPY requirements/runtime.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    /opt/venv/bin/pip install --require-hashes --only-binary :all: --requirement /runtime.txt \
 && /opt/venv/bin/pip uninstall --yes --quiet setuptools pip && find /opt/venv -depth -type d -name tests -exec rm -rf {} +

# What we wrote, installed below /out by the locked build backend.
FROM installer AS project
COPY requirements/build.txt /
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    /opt/venv/bin/pip install --require-hashes --only-binary :all: --requirement /build.txt
WORKDIR /src
# pyproject.toml names a README, for the page of a package index: an empty one, so that editing it builds nothing anew.
RUN touch README.md
COPY pyproject.toml LICENSE ./
COPY crds/warmfront_api crds/warmfront_api

FROM project AS operator-project
COPY forecaster/warmfront_forecaster forecaster/warmfront_forecaster
COPY operator/warmfront_operator operator/warmfront_operator
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation --root /out .

FROM project AS forecaster-project
COPY forecaster/warmfront_forecaster forecaster/warmfront_forecaster
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation --root /out .

FROM project AS runtime-project
COPY runtime/warmfront_runtime runtime/warmfront_runtime
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation --root /out .

FROM runner AS operator
COPY --from=operator-dependencies /opt/venv /opt/venv
COPY --from=operator-project /out /
EXPOSE 8081
ENTRYPOINT ["/opt/venv/bin/warmfront", "operator"]

FROM runner AS forecaster
ENV MPLCONFIGDIR=/tmp/matplotlib
COPY --from=forecaster-dependencies /opt/venv /opt/venv
COPY --from=forecaster-project /out /
EXPOSE 8082
ENTRYPOINT ["/opt/venv/bin/warmfront", "forecaster"]

# The gateway that stands before the engine in every pod.
FROM runner AS gateway
COPY --from=runtime-dependencies /opt/venv /opt/venv
COPY --from=runtime-project /out /
EXPOSE 8080 9090
ENTRYPOINT ["/opt/venv/bin/warmfront", "gateway"]

# Speaks the HTTP API of vLLM on a model of an engine.
FROM runner AS enginesim
COPY --from=runtime-dependencies /opt/venv /opt/venv
COPY --from=forecaster-project /out /
COPY e2e/enginesim /opt/enginesim/e2e/enginesim
ENV PYTHONPATH=/opt/enginesim
EXPOSE 8000
ENTRYPOINT ["/opt/venv/bin/python", "-m", "e2e.enginesim"]
