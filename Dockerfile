# The images are named by tag, not by digest: see "Compose" in OPERATIONS.md.
#
# Both stages run on the builder's architecture and build for that of the image.
FROM --platform=$BUILDPLATFORM node:22-alpine AS assets
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=assets /src/node_modules/htmx.org/dist/htmx.min.js static/vendor/
ENV CGO_ENABLED=0 GOFLAGS=-tags=nomsgpack
RUN go run -trimpath ./cmd/highlight
ARG TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /out/portal ./cmd/portal \
    && install -d -m 700 /out/root/data

# The program with pg_dump, for backups: docker build --target backup. Its version must not be older
# than the server's.
FROM postgres:17-alpine AS backup
COPY --from=build /out/portal /usr/local/bin/portal
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/portal"]

# Only the program, the CA certificates for TLS to the database, and a directory for SQLite.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/root/ /
COPY --from=build /out/portal /portal
USER 65532:65532
# There is no /tmp for the temporary files of SQLite.
ENV PORTAL_ADDR=0.0.0.0:8080 DATABASE_URL=sqlite:/data/portal.db SQLITE_TMPDIR=/data
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s CMD ["/portal", "healthcheck"]
ENTRYPOINT ["/portal"]
