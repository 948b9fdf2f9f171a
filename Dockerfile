# One image, two roles: `kt engine run` and `python -m kt_addons` (compose.yaml starts both from it).
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
    && pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.12-slim
COPY requirements.lock /tmp/
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
    && pip install --no-cache-dir --no-deps /wheels/*.whl \
    && rm -rf /wheels /tmp/requirements.lock \
    && useradd --create-home --uid 10001 kt \
    && install -d -o kt -g kt -m 0700 /var/lib/kt
USER kt
ENV KTESIO_STATE_DIR=/var/lib/kt
VOLUME /var/lib/kt
ENTRYPOINT ["kt"]
CMD ["engine", "run"]
