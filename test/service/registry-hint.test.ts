import { expect, test } from "bun:test";
import { registryFailureIn, registryHint } from "../../src/service/images/registry-hint.ts";

/** Messages of skopeo, shortened. */
test.each([
  ['Get "http://h:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused', "Nothing answers at h:1"],
  ["checking whether a blob exists in h:1/x: unauthorized: authentication required", "requires a login"],
  ["reading manifest 1 in h:1/x: requested access to the resource is denied", "requires a login"],
  ["reading manifest 1 in h:1/x: denied", "requires a login"],
  ["reading manifest 1 in h:1/x: StatusCode: 403, <html>no</html>", "requires a login"],
  ["failed to read from destination repository x: 403 (Forbidden)", "requires a login"],
  ["initializing source docker://h:1/x: received unexpected HTTP status: 403 Forbidden", "requires a login"],
  [
    "reading registries.conf.d: lstat /root/.config/containers/registries.conf.d: permission denied",
    undefined,
  ],
  ["writing blob: open /var/tmp/403/x: Permission denied", undefined],
  ["reading manifest 401 in h:403/x: manifest unknown", undefined],
  ["dial tcp: lookup h on 10.0.0.1:53: no such host", "The host h:1 was not found"],
  ["proxyconnect tcp: dial tcp: lookup proxy on 10.0.0.1:53: no such host", "The proxy can't be reached"],
  ["http: server gave HTTP response to HTTPS client", "does not use TLS"],
  [
    "x509: certificate signed by unknown authority",
    "does not use TLS, or its certificate is not trusted: CERTIFICATE.",
  ],
  ["dial tcp 10.0.0.1:443: i/o timeout", "does not respond"],
  ["reading manifest 1 in h:1/x: manifest unknown", undefined],
])("%s", (said, hint) => {
  const actual = registryHint("h:1", registryFailureIn(said), { login: "LOGIN", certificate: "CERTIFICATE" });
  if (hint === undefined) expect(actual).toBeUndefined();
  else expect(actual).toContain(hint);
});
