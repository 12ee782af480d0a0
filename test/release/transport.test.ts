/** `scripts/install.sh` downloads only over HTTPS, or from this machine. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeCertificate } from "../support/certificate.ts";
import { filesBelow, install, makeRelease, pathWith, serve } from "./fake-release.ts";

/** The certificate of servers, which the programs below trust. */
let tls: ReturnType<typeof makeCertificate>;
let environment: Record<string, string>;

beforeAll(() => {
  const directory = temporaryDirectory();
  tls = makeCertificate(directory);
  writeFileSync(join(directory, "wgetrc"), `ca_certificate = ${tls.path}\n`);
  environment = { CURL_CA_BUNDLE: tls.path, WGETRC: join(directory, "wgetrc") };
});

const busybox = { wget: `exec ${Bun.which("busybox")} wget "$@"` };

/** Programs that download, and the scripts that each needs in PATH. */
const downloaders: [string, Record<string, string>][] = [
  ["curl", {}],
  ["wget", {}],
  // Debian's accepts any certificate, with a message; Alpine's verifies it.
  ["busybox", busybox],
];

describe.each(downloaders)("with %s", (program, scripts) => {
  const path = () => pathWith(`${program} minisign`, scripts);

  test.each<[string, (pathname: string) => string | undefined]>([
    ["without a redirect", () => undefined],
    [
      "with a relative redirect",
      (name) => (name.startsWith("/latest/") ? name.replace("/latest/", "/1.2.3/") : undefined),
    ],
  ])("over HTTPS, %s", async (_, redirect) => {
    using server = serve(makeRelease(), { tls, redirect });
    const from = `${server.url}latest`;
    const { home, ended } = await install(["--from", from], { PATH: path(), ...environment });
    expect(ended.output).toContain(`installed ${home}/.local/bin/bough (1.2.3)\n`);
    expect(ended.exitCode).toBe(0);
  });

  test("over HTTPS, with a redirect to HTTPS on another server", async () => {
    using goal = serve(makeRelease(), { tls });
    using server = serve(makeRelease(), { tls, redirect: (name) => goal.url.slice(0, -1) + name });
    const { ended } = await install(["--from", server.url], { PATH: path(), ...environment });
    expect(ended.exitCode).toBe(0);
    expect(goal.paths).toHaveLength(3);
  });

  test.each([
    ["HTTPS", "/SHA256SUMS"],
    ["HTTPS", "/bough-1.2.3-linux-x64.tar.gz"],
    ["loopback", "/SHA256SUMS"],
    ["loopback", "/bough-1.2.3-linux-x64.tar.gz"],
  ])("from %s a redirect of %s to plain HTTP is refused", async (place, name) => {
    const release = makeRelease();
    using canary = serve(release);
    using server = serve(release, {
      ...(place === "HTTPS" ? { tls } : {}),
      redirect: (asked) => (asked === name ? canary.url.slice(0, -1) + asked : undefined),
    });
    const prefix = temporaryDirectory();
    mkdirSync(join(prefix, "bin"));
    writeFileSync(join(prefix, "bin/bough"), "the old one");
    const words = ["--from", server.url, "--prefix", prefix, "--target", "linux-x64"];
    const { ended } = await install(words, { PATH: path(), ...environment });
    expect(ended.output).toContain(`error: cannot download ${server.url.slice(0, -1)}${name}\n`);
    expect(ended.output).toContain("Redirects to plain HTTP are not followed.\n");
    expect(ended.exitCode).toBe(1);
    expect(filesBelow(prefix)).toEqual(["bin/bough"]);
  });

  test("no proxy is used for loopback", async () => {
    using proxy = serve(temporaryDirectory());
    using server = serve(makeRelease());
    const proxies = {
      http_proxy: proxy.url,
      HTTP_PROXY: proxy.url,
      all_proxy: proxy.url,
      ALL_PROXY: proxy.url,
    };
    const { ended } = await install(["--from", server.url], { PATH: path(), ...proxies });
    expect(ended.exitCode).toBe(0);
    expect(proxy.paths).toEqual([]);
  });

  test("a missing file is an error", async () => {
    using server = serve(temporaryDirectory());
    const { ended } = await install(["--from", server.url], { PATH: path() });
    expect(ended.output).toContain("404");
    expect(ended.output).toContain(`error: cannot download ${server.url}SHA256SUMS\n`);
    expect(ended.exitCode).toBe(1);
  });
});

test("nothing is installed if neither the certificate nor the signature can be verified", async () => {
  using server = serve(makeRelease(), { tls });
  const { ended, home } = await install(["--from", server.url], { PATH: pathWith("none", busybox) });
  expect(ended.output).toContain("neither the server's certificate nor the signature can be verified");
  expect(ended.exitCode).toBe(1);
  expect(filesBelow(home)).toEqual([]);
});

describe("plain HTTP over a network is refused without a request", () => {
  test.each([
    "http://releases.example/bough/1.2.3",
    "http://192.0.2.1/",
    "http://127.0.0.1.releases.example/",
    "http://127.0.0.1@releases.example/",
    "http://localhost:80@releases.example/",
    "http://localhost.releases.example/",
    "http://releases.example/http://127.0.0.1/",
    "http://releases.example?http://127.0.0.1/",
    "http://releases.example#@127.0.0.1/",
    "http://127.0.0.1:80\\@releases.example/",
    "http://127.0.0.1:80\\.releases.example/",
    "http://",
  ])("%s", async (from) => {
    const canary = join(temporaryDirectory(), "canary");
    const touch = `echo "$@" >> '${canary}'; exit 1`;
    const { ended } = await install(["--from", from], {
      PATH: pathWith("none", { curl: touch, wget: touch }),
    });
    expect(ended).toEqual({
      exitCode: 1,
      output:
        `error: ${from} is plain HTTP: others on the network could replace what is installed\n` +
        "Name an https address with --from, or a directory.\n",
    });
    expect(existsSync(canary)).toBe(false);
  });
});
