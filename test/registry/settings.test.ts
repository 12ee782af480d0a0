/** What the machine and its user say about registries: registries.conf, and certificates. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { connect } from "node:tls";
import { systemClock } from "../../src/clock.ts";
import { createTlsTrust } from "../../src/registry/certificates.ts";
import { sendOnce } from "../../src/registry/exchange.ts";
import { openBlobStore } from "../../src/registry/open-blob-store.ts";
import { findSettings } from "../../src/registry/registries-conf.ts";
import { parseRepository } from "../../src/registry/repository.ts";
import type { Fetch } from "../../src/service/service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { Registry } from "../support/registry.ts";

const { signal } = new AbortController();
let secured: Registry;
let certificate: string;
beforeAll(async () => {
  secured = await Registry.start(undefined, undefined, { hasTls: true });
  certificate = await certificateOf(secured.host);
});
afterAll(() => secured.stop());

/** Returns the certificate that a server shows. */
function certificateOf(host: string): Promise<string> {
  const [hostname = "", port] = host.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      const lines = raw.toString("base64").match(/.{1,64}/g) ?? [];
      resolve(["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"));
    });
    socket.on("error", reject);
  });
}

function write(files: Record<string, string>): string {
  const home = temporaryDirectory();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content);
  }
  return home;
}

const open = (environment: Record<string, string>) =>
  openBlobStore(`docker://${secured.host}/app`, {
    ...{ fetch, clock: systemClock },
    environment: { BOUGH_TLS_VERIFY: "true", BOUGH_RETRY: "0", ...environment },
  }).getManifest("none", signal);

test("a certificate is refused, unless SSL_CERT_FILE, SSL_CERT_DIR or certs.d has it", async () => {
  await expect(open({})).rejects.toThrow("certificate is not accepted");
  const home = write({
    "one.pem": certificate,
    "all/one.pem": certificate,
    [`.config/containers/certs.d/${secured.host}/ca.crt`]: certificate,
  });
  for (const environment of [
    { SSL_CERT_FILE: join(home, "one.pem") },
    { SSL_CERT_DIR: join(home, "all") },
    { HOME: home },
  ])
    expect(await open(environment)).toBeUndefined();
});

test("the machine's authorities are added once, when a certificate is not accepted", () => {
  const home = write({ "bundle.crt": "machine", "etc/docker/certs.d/r.example/client.cert": "cert" });
  writeFileSync(join(home, "etc/docker/certs.d/r.example/client.key"), "key");
  const places = { system: join(home, "etc"), bundles: [join(home, "none"), join(home, "bundle.crt")] };
  const trust = createTlsTrust({}, false, places);
  const [host, before] = ["other.example", trust.for("other.example")];
  expect(before).toBeUndefined();
  expect(trust.for("r.example")).toMatchObject({ cert: "cert", key: "key" });
  expect(trust.addMachineAuthorities(host, before)).toBe(true);
  expect(trust.for(host)?.ca?.[0]).toBe(readFileSync(join(home, "bundle.crt"), "utf8"));
  expect(trust.addMachineAuthorities(host, trust.for(host))).toBe(false);
  const given = createTlsTrust({ SSL_CERT_FILE: join(home, "bundle.crt") }, false, places);
  expect(given.addMachineAuthorities(host, given.for(host))).toBe(false);
  expect(createTlsTrust({}, true, places).for(host)).toEqual({ rejectUnauthorized: false });
});

test("requests at the same time whose certificates are not accepted are all sent again", async () => {
  const bundles = [join(write({ "bundle.crt": "machine" }), "bundle.crt")];
  const fetch: Fetch = async (_, init) => {
    const { ca } = (init as { tls?: { ca?: string[] } }).tls ?? {};
    if (ca?.[0] !== "machine") throw Object.assign(new Error("refused"), { code: "UNKNOWN_CERTIFICATE" });
    return new Response();
  };
  const options = { fetch, clock: systemClock, trust: createTlsTrust({}, false, { bundles }) };
  const url = new URL("https://r.example/v2/");
  const request = { method: "GET", path: url, url, scopes: [], authorization: undefined } as const;
  const all = await Promise.all([1, 2, 3].map(() => sendOnce(options, request, signal)));
  for (const exchanged of all) exchanged.end();
  expect(all.map(({ response }) => response.status)).toEqual([200, 200, 200]);
});

const main = `
unqualified-search-registries = ["docker.io"]
[[registry]]
location = "r.example"
insecure = true
[[registry]]
prefix = "r.example/team"
location = "elsewhere.example/team"
[[registry]]
prefix = "*.blocked.example"
blocked = true
`;

test.each<[string, string, boolean, boolean]>([
  ["r.example", "app", true, false],
  ["r.example", "team/app", false, false],
  ["r.example", "teams/app", true, false],
  ["r.example:5000", "app", false, false],
  ["a.blocked.example", "app", false, true],
  ["dropped.example", "app", true, false],
  ["replaced.example", "app", false, false],
])("registries.conf about %s/%s", (registry, name, isInsecure, isBlocked) => {
  const home = write({
    "etc/containers/registries.conf": '[[registry]]\nlocation = "unread.example"\ninsecure = true\n',
    "etc/containers/registries.conf.d/1.conf":
      '[[registry]]\nlocation = "replaced.example"\ninsecure = true\n',
    "home/.config/containers/registries.conf": main,
    "home/.config/containers/registries.conf.d/2.conf":
      '[[registry]]\nlocation = "dropped.example"\ninsecure = true\n[[registry]]\nlocation = "replaced.example"\n',
  });
  const environment = { HOME: join(home, "home") };
  const settings = (of: string) =>
    findSettings(parseRepository(`${of}/${name}`), environment, join(home, "etc"));
  expect(settings(registry)).toMatchObject({ named: { isInsecure }, isBlocked });
  expect(settings("unread.example").named.isInsecure).toBe(false);
});

const mirrored = `
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "m.example/hub"
[[registry.mirror]]
location = "n.example"
pull-from-mirror = "digest-only"
insecure = true
[[registry]]
prefix = "*.inner.example"
location = "outer.example/inner"
mirror-by-digest-only = true
[[registry.mirror]]
location = "localhost:5000"
`;

/** Where images are read: `tags` and `digests` are what a mirror is asked for. */
test.each<[string, string, string[]]>([
  ["r.example/app", "", ["r.example/app insecure"]],
  ["r.example/team/app", "", ["elsewhere.example/team/app"]],
  ["teams.example/app", "", ["teams.example/app"]],
  [
    "busybox",
    "",
    [
      "m.example/hub/library/busybox",
      "n.example/library/busybox digests insecure",
      "docker.io/library/busybox",
    ],
  ],
  [
    "a/b",
    "http://own:5000 https://two.example/x/",
    [
      "own:5000/a/b insecure",
      "two.example/x/a/b",
      "m.example/hub/a/b",
      "n.example/a/b digests insecure",
      "docker.io/a/b",
    ],
  ],
  ["r.example/app", "own:5000", ["r.example/app insecure"]],
  ["a.inner.example/app", "", ["localhost:5000/app digests insecure", "outer.example/inner/app"]],
  ["inner.example/app", "", ["inner.example/app"]],
])("%s is read with the mirrors %j from %j", (name, BOUGH_REGISTRY_MIRROR, expected) => {
  const CONTAINERS_REGISTRIES_CONF = join(write({ "a.conf": main + mirrored }), "a.conf");
  const environment = { CONTAINERS_REGISTRIES_CONF, BOUGH_REGISTRY_MIRROR };
  const { mirrors, location, named } = findSettings(parseRepository(name), environment);
  const places = [...mirrors, location].map(({ repository, reads, isInsecure }) =>
    [
      repository.address.slice("docker://".length),
      ...(reads === "all" ? [] : [reads]),
      ...(isInsecure ? ["insecure"] : []),
    ].join(" "),
  );
  expect(places).toEqual(expected);
  expect(named.repository).toEqual(parseRepository(name));
});

test("an invalid mirror of the environment is named", () => {
  const find = () => findSettings(parseRepository("busybox"), { BOUGH_REGISTRY_MIRROR: "a.example ?" });
  expect(find).toThrow('BOUGH_REGISTRY_MIRROR: invalid mirror "?"');
});

test("a blocked registry is refused, and a damaged file named", () => {
  const home = write({ "a.conf": main, "b.conf": "[[registry" });
  const openWith = (file: string) => () =>
    openBlobStore("docker://a.blocked.example/app", {
      ...{ fetch, clock: systemClock },
      environment: { CONTAINERS_REGISTRIES_CONF: join(home, file) },
    });
  expect(openWith("a.conf")).toThrow("docker://a.blocked.example/app is blocked");
  expect(openWith("b.conf")).toThrow(`the configuration of registries in ${join(home, "b.conf")}`);
});
