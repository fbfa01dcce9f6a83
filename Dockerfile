# Any Debian-based image with Python 3.11, 3.12 or 3.13.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
USER root
# Debian's own Python comes without venv and pip.
RUN python3 -c 'import ensurepip, venv' 2>/dev/null \
    || { apt-get update && apt-get install --yes --no-install-recommends python3-venv; }
RUN python3 -m venv /opt/tfbbb
ENV PATH=/opt/tfbbb/bin:$PATH
WORKDIR /source
COPY requirements.lock ./
# The C++ headers, a fifth of the size, only serve to compile custom operations.
RUN pip install --no-cache-dir --no-compile --require-hashes \
        --requirement requirements.lock \
    && rm -r /opt/tfbbb/lib/python3.*/site-packages/tensorflow/include
COPY . ./
# Bytecode that isn't checked against the times of files: builders may round those, and
# Python would then compile thousands of modules anew at every start.
RUN pip install --no-cache-dir --no-compile --no-deps . \
    && pip check \
    && pip uninstall --yes pip \
    && python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/tfbbb/lib

FROM ${BASE_IMAGE}
USER root
RUN useradd --uid 10001 --create-home tfbbb \
    && install --directory --owner tfbbb --group tfbbb \
        /app /app/saved_models /app/.tfbbb
COPY --from=build /opt/tfbbb /opt/tfbbb
ENV PATH=/opt/tfbbb/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /app
# The models; and datasets, jobs and the database.
VOLUME ["/app/saved_models", "/app/.tfbbb"]
# A number, for platforms that check that it isn't root.
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "\
from http.client import HTTPConnection; \
connection = HTTPConnection('127.0.0.1', 8000, timeout=4); \
connection.request('GET', '/health/live'); \
raise SystemExit(connection.getresponse().status != 200)"]
# Refuses to start without a key: set TFBBB_ADMIN_KEY.
# Without an entry point that the base may have.
ENTRYPOINT []
CMD ["tfbbb", "serve", "--host", "0.0.0.0"]
