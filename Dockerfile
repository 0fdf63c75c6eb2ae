# The image holds the binary, what assistants and repositories need (git, a shell,
# ripgrep, the zones in which agents say when a limit ends), and what a backup of the
# PostgreSQL in docker-compose.yml needs.
# Everything else is up to you: add a toolchain in a stage of your own, FROM this
# image.
FROM golang:1.26-alpine AS build
WORKDIR /src
RUN apk add --no-cache ca-certificates
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.release=${VERSION}" -o /out/bot ./cmd/bot \
 && mkdir -p -m 0700 /out/data

FROM alpine:3.22
RUN apk add --no-cache bash ca-certificates git postgresql17-client ripgrep tzdata
COPY --from=build /out/bot /bot
COPY --from=build --chown=10001:10001 /out/data /data
USER 10001:10001
WORKDIR /data
# The container's own interface; publish the port where it should be reached.
ENV DATA_DIR=/data LISTEN_ADDR=0.0.0.0:3000
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=3s --start-period=20s --retries=3 CMD ["/bot", "healthcheck"]
ENTRYPOINT ["/bot"]
CMD ["serve", "--no-console"]
