# Any Debian-based image with Python 3.11, 3.12 or 3.13.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS dependencies
USER root
# Debian's own Python comes without venv and pip.
RUN python3 -c 'import ensurepip, venv' 2>/dev/null \
    || { apt-get update && apt-get install --yes --no-install-recommends python3-venv; }
# pip has a separate environment, which the image does not contain.
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/tfbbb
ENV PATH=/opt/pip/bin:$PATH PIP_PYTHON=/opt/tfbbb/bin/python
WORKDIR /source
RUN command -v strip >/dev/null \
    || { apt-get update && apt-get install --yes --no-install-recommends binutils; }
COPY requirements-image.lock ./
RUN pip install --no-cache-dir --no-deps --no-compile --require-hashes \
        --requirement requirements-image.lock
# Neither serving nor training reads these files, half of the packages:
# - the packages' own tests, and the part of pyarrow for Flight;
# - C++ headers, and `clang` to parse them, which only compile custom operations;
# - symbols for debuggers. The libraries in `*.libs` were patched and break without theirs.
# `tensorflow-cpu` gets the name that other packages require.
RUN cd /opt/tfbbb/lib/python3.*/site-packages \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && rm -r clang tensorflow/include pyarrow/include pyarrow/*flight* \
    && find . -type f \( -name '*.so' -o -name '*.so.*' \) -not -path './*.libs/*' \
        -exec strip --strip-unneeded {} + \
    && for metadata in tensorflow_cpu-*.dist-info; do [ ! -d "$metadata" ] \
        || { sed -i 's/^Name: .*/Name: tensorflow/' "$metadata/METADATA" \
            && mv "$metadata" "tensorflow-${metadata#*-}"; }; done
# The bytecode ignores the times of files: builders may round these, and Python would then
# recompile thousands of modules at every start.
RUN /opt/tfbbb/bin/python -m compileall -q -f -j 0 \
        --invalidation-mode unchecked-hash /opt/tfbbb/lib

# A separate stage, so that a new version of the source is a small layer.
FROM dependencies AS package
COPY . ./
# The imports fail if a library is broken or a file is missing.
RUN pip install --no-cache-dir --no-compile --no-deps --prefix /opt/package . \
    && export PYTHONPATH=$(echo /opt/package/lib/python3.*/site-packages) \
    && pip check \
    && /opt/tfbbb/bin/python -m compileall -q -f -s /opt/package -p /opt/tfbbb \
        --invalidation-mode unchecked-hash /opt/package/lib \
    && cd / && /opt/tfbbb/bin/python -c 'import tfbbb.judging.explain, tfbbb.export, tfbbb.inference, \
        tfbbb.plots, tfbbb.sklearn, tfbbb.training, service.app, service.trainer, \
        service.job_process.dispatcher, service.model_process.worker'

FROM ${BASE_IMAGE}
USER root
RUN useradd --uid 10001 --create-home tfbbb \
    && install --directory --owner tfbbb --group tfbbb \
        /app /app/saved_models /app/.tfbbb
COPY --from=dependencies /opt/tfbbb /opt/tfbbb
COPY --from=package /opt/package /opt/tfbbb
ENV PATH=/opt/tfbbb/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /app
# Volumes: the models; datasets, jobs and the database.
VOLUME ["/app/saved_models", "/app/.tfbbb"]
# A number, for platforms that check that the user is not root.
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "\
from http.client import HTTPConnection; \
connection = HTTPConnection('127.0.0.1', 8000, timeout=4); \
connection.request('GET', '/health/live'); \
raise SystemExit(connection.getresponse().status != 200)"]
# The service does not start without a key: set TFBBB_ADMIN_KEY.
# Removes an entry point of the base image.
ENTRYPOINT []
CMD ["tfbbb", "serve", "--host", "0.0.0.0"]
