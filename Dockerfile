# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
# librdkafka, SQLite and zstd are built from source.
RUN apt-get update \
    && apt-get install -y --no-install-recommends make g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The cache holds target/, so the binary is copied out of it within the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/usr/local/cargo/git \
    --mount=type=cache,target=/src/target \
    CARGO_INCREMENTAL=0 cargo build --release --locked --package geoclaim --bin geoclaim \
    && cp target/release/geoclaim /usr/local/bin/geoclaim \
    && strip --strip-debug /usr/local/bin/geoclaim

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin geoclaim \
    && install --directory --owner=10001 --mode=0755 /out
COPY --from=build /usr/local/bin/geoclaim /usr/local/bin/geoclaim
# By number, so that Kubernetes can prove that it is not root.
USER 10001
WORKDIR /out
# The binary itself answers SIGTERM: it finishes what is in flight, commits and leaves.
ENTRYPOINT ["geoclaim"]
CMD ["--help"]
