/**
 * `--sign` and `bough verify`, with a certificate authority and a transparency log of their own, and two registries: one lists
 * referrers, the other (Debian's docker-registry) does not.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { digestOf } from "../../src/image/digest.ts";
import { mediaTypes } from "../../src/image/oci-layout.ts";
import { openReferrers } from "../../src/registry/open-blob-store.ts";
import { Secret } from "../../src/secret.ts";
import { createSigner } from "../../src/signatures/sign.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { type ReferrersRegistry, startReferrersRegistry } from "../support/referrers-registry.ts";
import { Registry } from "../support/registry.ts";
import { identityToken, type Sigstore, startSigstore } from "../support/sigstore.ts";
import { startTimestampAuthority, type TimestampAuthority } from "../support/timestamp-authority.ts";

setDefaultTimeout(60_000);

const places = temporaryDirectory();
const home = temporaryDirectory();
const github = "https://token.actions.githubusercontent.com";
const workflow = "https://github.com/team/app/.github/workflows/build.yml@refs/heads/main";
const token = identityToken({
  ...{ iss: github, sub: "repo:team/app:ref:refs/heads/main" },
  job_workflow_ref: "team/app/.github/workflows/build.yml@refs/heads/main",
});

let sigstore: Sigstore;
let registry: ReferrersRegistry;
let old: Registry;
let app: string;

const bough = (words: readonly string[], environment: Record<string, string> = {}) =>
  runBough(["--local", ...words], {
    workingDirectory: places,
    environment: { BOUGH_HOME: home, BOUGH_RETRY: "0", ...environment },
  });
const services = () => `fulcio-url=${sigstore.authority},rekor-url=${sigstore.log}`;
const keyless = () => `keyless,${services()}`;
const expected = ["--issuer", github, "--identity", workflow];
const verify = (image: string, words: readonly string[] = expected) =>
  bough(["verify", image, "--trusted-root", "root.json", ...words, "-f", "json"]);

/** What tests change of a bundle. */
interface Bundle {
  verificationMaterial: {
    certificate?: unknown;
    publicKey?: unknown;
    tlogEntries: {
      integratedTime: string;
      logIndex: string;
      inclusionPromise?: unknown;
      inclusionProof: { hashes: string[] };
    }[];
  };
  dsseEnvelope: { payload: string; signatures: [{ sig: string }] };
}

const messageIn = (stderr: string): string => JSON.parse(stderr).error.message;

/** The last repository of a test. */
let count = 0;
async function push(sign: string, { host = registry.host, environment = {} as Record<string, string> } = {}) {
  app = `${host}/team/app${++count}:1`;
  return bough(["push", "app:1", app, "--sign", sign], { SIGSTORE_ID_TOKEN: token, ...environment });
}

/** Replaces the bundle of the last push. */
function changeBundle(change: (bundle: Bundle) => void): void {
  const repository = app.slice(registry.host.length + 1).replace(/:1$/, "");
  for (const [name, stored] of [...registry.manifests]) {
    const manifest = JSON.parse(stored.text);
    if (!name.startsWith(`${repository}@`) || manifest.subject === undefined) continue;
    const bundle = JSON.parse(registry.blobs.get(manifest.layers[0].digest)?.toString() ?? "");
    change(bundle);
    const bytes = Buffer.from(JSON.stringify(bundle));
    const digest = `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
    registry.blobs.set(digest, bytes);
    manifest.layers[0] = { ...manifest.layers[0], digest, size: bytes.byteLength };
    const text = JSON.stringify(manifest);
    registry.manifests.delete(name);
    registry.manifests.set(
      `${repository}@sha256:${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`,
      { ...stored, text },
    );
  }
}

const payloadOf = (text: string) => Buffer.from(text).toString("base64");

beforeAll(async () => {
  sigstore = startSigstore();
  registry = startReferrersRegistry();
  old = await Registry.start();
  writeFiles(places, { "root.json": sigstore.trustedRoot, "context/Dockerfile": "FROM scratch\nCOPY a /\n" });
  writeFiles(places, { "context/a": "a\n" });
  const { exitCode, stderr } = await bough(["build", "context", "--tag", "app:1"]);
  if (exitCode !== 0) throw new Error(stderr);
});

beforeEach(() => {
  sigstore.now = () => new Date();
  sigstore.respond = () => undefined;
});

afterAll(async () => {
  await Promise.all([sigstore[Symbol.asyncDispose](), registry[Symbol.asyncDispose](), old.stop()]);
});

describe("an image that a pipeline's identity has signed", () => {
  test("is signed before its tag names it, and verifies by identity and issuer", async () => {
    const pushed = await push(keyless());
    expect(pushed.stderr).toContain(`by ${workflow}, entry `);
    expect(pushed.exitCode).toBe(0);
    const name = app.replace(/^[^/]+\//, "").replace(/:1$/, "");
    const puts = registry.requests.filter((request) => request.startsWith(`PUT /v2/${name}/manifests/`));
    expect(puts.map((request) => request.replace(/.*manifests\//, "").slice(0, 7))).toEqual([
      "sha256:",
      "sha256:",
      "1",
    ]);
    const { exitCode, stdout, stderr } = await verify(app);
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      reference: app,
      digest: expect.stringMatching(/^sha256:/),
      signatures: [
        {
          ...{ identity: workflow, issuer: github, kind: "bundle" },
          signedAt: expect.stringMatching(/^20\d\d-/),
          logIndex: expect.stringMatching(/^\d+$/),
          manifest: expect.stringMatching(/^sha256:/),
        },
      ],
    });
  });

  test("of a branch with a comma and quotes in its name, is said to be by it as verify says it", async () => {
    const branch = 'team/app/.github/workflows/build.yml@refs/heads/a,"b"';
    const { stderr } = await push(keyless(), {
      environment: { SIGSTORE_ID_TOKEN: identityToken({ iss: github, sub: "a", job_workflow_ref: branch }) },
    });
    const identity = `https://github.com/${branch}`;
    expect(stderr).toContain(`by ${identity}, entry `);
    const verified = await verify(app, ["--issuer", github, "--identity", identity]);
    expect(JSON.parse(verified.stdout).signatures).toMatchObject([{ identity }]);
  });

  test("has the referrer that cosign writes", async () => {
    await push(keyless());
    const manifest = [...registry.manifests.values()]
      .map(({ text }) => JSON.parse(text))
      .findLast((each) => each.subject);
    expect(manifest).toEqual({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      artifactType: "application/vnd.dev.sigstore.bundle.v0.3+json",
      config: {
        mediaType: "application/vnd.oci.empty.v1+json",
        digest: "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        size: 2,
      },
      layers: [
        {
          mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
          digest: expect.any(String),
          size: expect.any(Number),
        },
      ],
      subject: {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        digest: expect.any(String),
        size: expect.any(Number),
      },
      annotations: {
        "org.opencontainers.image.created": expect.any(String),
        "dev.sigstore.bundle.content": "dsse-envelope",
        "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
      },
    });
    const bundle = JSON.parse(registry.blobs.get(manifest.layers[0].digest)?.toString() ?? "");
    expect(JSON.parse(Buffer.from(bundle.dsseEnvelope.payload, "base64").toString())).toEqual({
      _type: "https://in-toto.io/Statement/v1",
      subject: [{ digest: { sha256: manifest.subject.digest.slice("sha256:".length) } }],
      predicateType: "https://sigstore.dev/cosign/sign/v1",
      predicate: {},
    });
  });

  test.each([
    [
      "regular expressions",
      "--identity-regexp ^https://github\\.com/team/app/ --issuer-regexp githubusercontent",
    ],
    [
      "cosign's names of the options",
      `--certificate-identity ${workflow} --certificate-oidc-issuer-regexp ^${github}$`,
    ],
  ])("is verified by %s", async (_, words) => {
    await push(keyless());
    const { exitCode } = await verify(app, words.split(" "));
    expect(exitCode).toBe(0);
  });

  test("in a registry that lists no referrers, is found by the tag that stands in", async () => {
    const { exitCode } = await push(keyless(), { host: old.host });
    expect(exitCode).toBe(0);
    const verified = await verify(app);
    expect(verified.stderr).toBe("");
    const { digest } = JSON.parse(verified.stdout);
    const repository = app.slice(old.host.length + 1).replace(/:1$/, "");
    const index = await fetch(`http://${old.host}/v2/${repository}/manifests/${digest.replace(":", "-")}`, {
      headers: { accept: "application/vnd.oci.image.index.v1+json" },
    });
    expect(await index.json()).toMatchObject({
      mediaType: "application/vnd.oci.image.index.v1+json",
      manifests: [{ artifactType: "application/vnd.dev.sigstore.bundle.v0.3+json" }],
    });
    // Another signature is added to it.
    await bough(["push", "app:1", app, "--sign", keyless()], { SIGSTORE_ID_TOKEN: token });
    expect(JSON.parse((await verify(app)).stdout).signatures).toHaveLength(2);
  });

  test("asks GitHub for the token, for sigstore", async () => {
    const asked: string[] = [];
    await using github = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        asked.push(`${new URL(request.url).search} ${request.headers.get("authorization")}`);
        return Response.json({ value: token });
      },
    });
    const { exitCode, stderr } = await push(keyless(), {
      environment: {
        SIGSTORE_ID_TOKEN: "",
        ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${github.port}/token?version=2`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: "of the runner",
      },
    });
    expect(stderr).not.toContain("of the runner");
    expect(exitCode).toBe(0);
    expect(asked).toEqual(["?version=2&audience=sigstore Bearer of the runner"]);
    expect((await verify(app)).exitCode).toBe(0);
  });

  test("with cosign-tag, has cosign's old signature, too", async () => {
    await push(`${keyless()},cosign-tag=true`);
    const { signatures } = JSON.parse((await verify(app)).stdout);
    expect(signatures.map(({ kind }: { kind: string }) => kind)).toEqual(["bundle", "tag"]);
    // The tag alone, as what cosign 2 signs.
    for (const [name, { text }] of [...registry.manifests])
      if (JSON.parse(text).subject !== undefined) registry.manifests.delete(name);
    expect(JSON.parse((await verify(app)).stdout).signatures).toMatchObject([
      { kind: "tag", identity: workflow },
    ]);
    // It says nothing but whose the image is.
    const type = "https://slsa.dev/provenance/v1";
    const asked = await verify(app, [...expected, "--type", type]);
    expect(messageIn(asked.stderr)).toContain("it is a signature of the image alone, not a statement");
    expect(asked.exitCode).toBe(1);
    const signed = await verify(app, [...expected, "--type", "https://sigstore.dev/cosign/sign/v1"]);
    expect(signed.exitCode).toBe(0);
  });
});

/** Changes what a proof of inclusion does not cover. */
function forgeEntry({ verificationMaterial: { tlogEntries } }: Bundle): void {
  for (const entry of tlogEntries) {
    delete entry.inclusionPromise;
    entry.integratedTime = String(Date.parse("2001-01-01T00:00:00Z") / 1000);
    entry.logIndex = "7777";
  }
}

describe("a timestamp authority", () => {
  const rootWith = ({ chain }: TimestampAuthority) => {
    const root = JSON.parse(sigstore.trustedRoot);
    const certificates = chain.map((rawBytes) => ({ rawBytes }));
    const [{ validFor }] = root.certificateAuthorities;
    root.timestampAuthorities = [{ subject: {}, uri: "", certChain: { certificates }, validFor }];
    return root;
  };

  test("says when it was signed, without a log", async () => {
    await using authority = startTimestampAuthority();
    const { tlogs: _, ...root } = rootWith(authority);
    writeFileSync(join(places, "stamped.json"), JSON.stringify(root));
    const fields = `fulcio-url=${sigstore.authority},tlog=false,timestamp-url=${authority.url}`;
    const pushed = await push(`keyless,${fields}`);
    expect(pushed.stderr).toContain(`by ${workflow}\n`);
    expect(pushed.exitCode).toBe(0);
    const words = ["verify", app, "--trusted-root", "stamped.json", ...expected, "-f", "json"];
    const { exitCode, stdout, stderr } = await bough(words);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout).signatures).toMatchObject([
      { identity: workflow, logIndex: null, signedAt: expect.stringMatching(/^20\d\d-/) },
    ]);
    expect(exitCode).toBe(0);
    // One whose root names a log needs an entry there, and another authority's time counts for nothing.
    expect((await verify(app)).exitCode).toBe(1);
  });

  test("says it, too, where the log has proven its entry without signing a time", async () => {
    await using authority = startTimestampAuthority();
    writeFileSync(join(places, "both.json"), JSON.stringify(rootWith(authority)));
    await push(`${keyless()},timestamp-url=${authority.url}`);
    changeBundle(forgeEntry);
    const words = ["verify", app, "--trusted-root", "both.json", ...expected, "-f", "json"];
    const { exitCode, stdout, stderr } = await bough(words);
    expect(exitCode, stderr).toBe(0);
    const [{ signedAt, logIndex }] = JSON.parse(stdout).signatures;
    expect(signedAt).toMatch(/^20\d\d-/);
    expect(signedAt).not.toStartWith("2001-");
    expect(logIndex).toBeNull();
  });
});

describe("a build and its kin", () => {
  test("build --push signs one entry for all tags of an image", async () => {
    const names = ["one", "two"].map((name) => `${registry.host}/built/${name}:1`);
    const entries = () =>
      sigstore.requests.filter((request) => request === "POST /log/api/v1/log/entries").length;
    const before = entries();
    const words = ["build", "context", "--docker", "--push", "--sign", keyless()];
    const tags = names.flatMap((name) => ["--tag", name]);
    const { exitCode, stderr } = await bough([...words, ...tags], { SIGSTORE_ID_TOKEN: token });
    expect(stderr).toContain(`signed ${registry.host}/built/one@sha256:`);
    expect(exitCode).toBe(0);
    expect(entries() - before).toBe(1);
    for (const name of names) expect((await verify(name)).exitCode).toBe(0);
  });

  test.each(["build", "push", "index create"])("%s says which signature it has made", async (command) => {
    const name = `${registry.host}/said/${command.replace(" ", "-")}:1`;
    const build = `build context --docker --push --tag ${name} --metadata-file metadata.json`;
    if (command === "index create") await bough(build.split(" "));
    const words = { build, push: `push app:1 ${name}`, "index create": `index create ${name} ${name}` }[
      command
    ];
    const how = ["--sign", keyless(), "--format", "json"];
    const { exitCode, stdout, stderr } = await bough([...(words ?? "").split(" "), ...how], {
      SIGSTORE_ID_TOKEN: token,
    });
    expect(exitCode, stderr).toBe(0);
    const [{ manifest, logIndex }] = JSON.parse((await verify(name)).stdout).signatures;
    const bundle = JSON.parse(
      [...registry.manifests].find(([place]) => place.endsWith(manifest))?.[1].text ?? "",
    ).layers[0].digest;
    const signature = { identity: workflow, logIndex, bundle, manifest };
    const result = JSON.parse(stdout);
    expect(command === "build" ? result.exported[0].signature : result.signature).toEqual(signature);
    if (command !== "build") return;
    const metadata = JSON.parse(readFileSync(join(places, "metadata.json"), "utf8"));
    expect(metadata.exported[0].signature).toEqual(signature);
  });

  test("bake signs what it pushes, however it is asked to, and not what it writes", async () => {
    const outputs = {
      registry: "type=registry",
      image: "type=image,push=true",
      one: { type: "image", push: 1 },
      flag: undefined,
      written: "type=oci,dest=written.tar",
    };
    const target = Object.fromEntries(
      Object.entries(outputs).map(([name, output]) => [
        name,
        {
          context: "context",
          tags: [`${registry.host}/baked/${name}:1`],
          ...(output && { output: [output] }),
        },
      ]),
    );
    writeFileSync(join(places, "bake.json"), JSON.stringify({ target }));
    const bake = (words: string) =>
      bough(["bake", "-f", "bake.json", ...words.split(" "), "--sign", keyless()], {
        SIGSTORE_ID_TOKEN: token,
      });
    for (const words of ["registry image one written", "flag --push"]) {
      const { exitCode, stderr } = await bake(words);
      expect(exitCode, stderr).toBe(0);
    }
    for (const name of ["registry", "image", "one", "flag"])
      expect((await verify(`${registry.host}/baked/${name}:1`)).exitCode, name).toBe(0);
    for (const words of ["written", "image --set image.output=type=image,push=0"]) {
      const none = await bake(words);
      expect(none.stderr).toContain("--sign needs an image that is pushed");
      expect(none.exitCode).toBe(2);
    }
  });

  test("bake opens its signer once: an image of two targets has one entry", async () => {
    const target = Object.fromEntries(
      ["one", "two"].map((name) => [
        name,
        { context: "context", tags: [`${registry.host}/equal/${name}:1`], output: ["type=registry"] },
      ]),
    );
    writeFileSync(join(places, "equal.json"), JSON.stringify({ target }));
    const entries = () =>
      sigstore.requests.filter((request) => request === "POST /log/api/v1/log/entries").length;
    const before = entries();
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const how = ["--sign", `key=env://SIGNING_KEY,rekor-url=${sigstore.log}`];
    const words = ["bake", "-f", "equal.json", "one", "two", ...how];
    const { exitCode, stderr } = await bough(words, { SIGNING_KEY: key });
    expect(exitCode, stderr).toBe(0);
    for (const name of ["one", "two"]) expect(stderr).toContain(`signed ${registry.host}/equal/${name}@`);
    expect(entries() - before).toBe(1);
  });

  test("index create signs the index", async () => {
    await push(keyless());
    const index = app.replace(/:1$/, ":all");
    const words = ["index", "create", index, app, "--sign", keyless()];
    expect((await bough(words, { SIGSTORE_ID_TOKEN: token })).exitCode).toBe(0);
    const verified = JSON.parse((await verify(index)).stdout);
    expect(registry.manifests.get(index.slice(registry.host.length + 1))?.mediaType).toContain("image.index");
    expect(verified.digest).not.toBe(JSON.parse((await verify(app)).stdout).digest);
  });
});

describe("a key", () => {
  const pair = (type: "ec" | "ed25519") =>
    type === "ec" ? generateKeyPairSync("ec", { namedCurve: "P-256" }) : generateKeyPairSync("ed25519");

  test.each(["ec", "ed25519"] as const)("of type %s signs without any service", async (type) => {
    const { privateKey, publicKey } = pair(type);
    writeFileSync(join(places, "own.key"), privateKey.export({ type: "pkcs8", format: "pem" }));
    writeFileSync(join(places, "own.pub"), publicKey.export({ type: "spki", format: "pem" }));
    const before = sigstore.requests.length;
    const pushed = await push("key=own.key,cosign-tag=true");
    expect(pushed.stderr).toContain("by the key");
    expect(pushed.exitCode).toBe(0);
    expect(sigstore.requests.length).toBe(before);
    const { stdout } = await bough(["verify", app, "--key", "own.pub", "-f", "json"]);
    expect(JSON.parse(stdout).signatures).toMatchObject([
      { identity: null, issuer: null, signedAt: null, kind: "bundle" },
      { identity: null, kind: "tag" },
    ]);
    const other = pair(type).publicKey.export({ type: "spki", format: "pem" }).toString();
    const refused = await bough(["verify", app, "--key", "env://OTHER"], { OTHER: other });
    expect(refused.stderr).toContain("signature verification failed");
    expect(refused.exitCode).toBe(1);
  });

  test("with a log, is entered there, and the log is asked for with a trusted root", async () => {
    const { privateKey, publicKey } = pair("ec");
    const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    writeFileSync(join(places, "own.pub"), publicKey.export({ type: "spki", format: "pem" }));
    await push(`key=env://SIGNING_KEY,rekor-url=${sigstore.log}`, { environment: { SIGNING_KEY: key } });
    const words = ["--key", "own.pub"];
    expect(JSON.parse((await verify(app, words)).stdout).signatures).toMatchObject([
      { identity: null, signedAt: expect.any(String), logIndex: expect.stringMatching(/^\d+$/) },
    ]);
    changeBundle(forgeEntry);
    expect(JSON.parse((await verify(app, words)).stdout).signatures).toMatchObject([
      { identity: null, signedAt: null, logIndex: null },
    ]);
    await push("key=env://SIGNING_KEY", { environment: { SIGNING_KEY: key } });
    const refused = await verify(app, words);
    expect(refused.exitCode).toBe(1);
    expect(messageIn(refused.stderr)).toContain("expected 1 tlog entries, got 0");
  });
});

describe("what verify refuses", () => {
  test.each<[string, string, (bundle: Bundle) => void]>([
    [
      "a statement that was changed",
      "it does not verify",
      (bundle) => {
        const payload = Buffer.from(bundle.dsseEnvelope.payload, "base64").toString();
        bundle.dsseEnvelope.payload = payloadOf(payload.replace('"predicate":{}', '"predicate":{"a":1}'));
      },
    ],
    [
      "a signature that was changed",
      "it does not verify",
      (bundle) => {
        bundle.dsseEnvelope.signatures[0].sig = payloadOf("another");
      },
    ],
    [
      "a log entry's time that was changed",
      "it does not verify",
      (bundle) => {
        const [entry] = bundle.verificationMaterial.tlogEntries;
        if (entry !== undefined) entry.integratedTime = String(Number(entry.integratedTime) + 1);
      },
    ],
    [
      "a log entry's time that was changed to one at which the certificate was not valid",
      "it does not verify: inclusion promise could not be verified",
      (bundle) => {
        const [entry] = bundle.verificationMaterial.tlogEntries;
        if (entry !== undefined) entry.integratedTime = String(Number(entry.integratedTime) + 86_400);
      },
    ],
    [
      "no log entry",
      "it does not verify: expected 1 timestamps, got 0",
      (bundle) => {
        bundle.verificationMaterial.tlogEntries = [];
      },
    ],
    [
      "an inclusion proof for another entry",
      "it does not verify",
      (bundle) => {
        bundle.verificationMaterial.tlogEntries[0]?.inclusionProof.hashes.push(payloadOf("x".repeat(32)));
      },
    ],
    [
      "a key in place of the certificate",
      "it is made by a key, and has no certificate",
      (bundle) => {
        delete bundle.verificationMaterial.certificate;
        bundle.verificationMaterial.publicKey = { hint: "x" };
      },
    ],
    [
      "something else than a bundle",
      "it is damaged",
      (bundle) => {
        Object.assign(bundle, { mediaType: "something else" });
      },
    ],
  ])("%s", async (_, reason, change) => {
    await push(keyless());
    changeBundle(change);
    const { exitCode, stderr, stdout } = await verify(app);
    expect(messageIn(stderr)).toContain(`has a signature that does not count: ${reason}`);
    expect(stdout).toBe("");
    expect(exitCode).toBe(1);
  });

  test("the signature of another image", async () => {
    await push(keyless());
    const [signed, other] = [app, `${registry.host}/team/other:1`];
    writeFiles(places, { "context/a": `another ${count}\n` });
    await bough(["build", "context", "--tag", "other:1"]);
    await bough(["push", "other:1", other]);
    const digests = await Promise.all(
      [signed, other].map(
        async (name) => JSON.parse((await bough(["index", "inspect", name, "-f", "json"])).stdout).digest,
      ),
    );
    // Its referrer is said to be about the other image, as somebody who may write to the registry can do.
    for (const [name, stored] of [...registry.manifests]) {
      const manifest = JSON.parse(stored.text);
      if (manifest.subject?.digest !== digests[0] || !name.includes(`app${count}@`)) continue;
      manifest.subject.digest = digests[1];
      const text = JSON.stringify(manifest);
      const digest = `sha256:${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
      registry.manifests.set(`team/other@${digest}`, { ...stored, text });
    }
    const { exitCode, stderr } = await verify(other);
    expect(messageIn(stderr)).toContain(`it is about ${digests[0]}, not about the image`);
    expect(exitCode).toBe(1);
  });

  test.each([
    [
      "another identity",
      ["--issuer", github, "--identity", `${workflow}2`],
      `it is by ${workflow}, not by ${workflow}2`,
    ],
    [
      "part of an identity",
      ["--issuer", github, "--identity", workflow.slice(0, -1)],
      `it is by ${workflow}, not by`,
    ],
    [
      "another issuer",
      ["--issuer", "https://gitlab.com", "--identity", workflow],
      `vouched for by ${github}, not by https://gitlab.com`,
    ],
    [
      "an expression that does not match",
      ["--issuer-regexp", ".", "--identity-regexp", "^team/"],
      `it is by ${workflow}, not by /^team//`,
    ],
  ])("%s", async (_, words, reason) => {
    await push(keyless());
    const { exitCode, stderr } = await verify(app, words);
    expect(messageIn(stderr)).toContain(reason);
    expect(exitCode).toBe(1);
  });

  test("a certificate that had expired when the log entered the signature", async () => {
    sigstore.now = () => new Date(Date.now() - 3_600_000);
    sigstore.respond = (path) => {
      if (path.startsWith("/log/")) sigstore.now = () => new Date();
      return undefined;
    };
    await push(keyless());
    const { exitCode, stderr } = await verify(app);
    expect(messageIn(stderr)).toContain("but the log says that it was used at");
    expect(exitCode).toBe(1);
  });

  test("an authority and a log that are not trusted", async () => {
    await push(keyless());
    await using other = startSigstore();
    writeFileSync(join(places, "other.json"), other.trustedRoot);
    const { exitCode } = await bough(["verify", app, "--trusted-root", "other.json", ...expected]);
    expect(exitCode).toBe(1);
  });

  test("a certificate that no log of certificates has, where the root names one", async () => {
    await push(keyless());
    const root = JSON.parse(sigstore.trustedRoot);
    writeFileSync(join(places, "certificates.json"), JSON.stringify({ ...root, ctlogs: root.tlogs }));
    const words = ["verify", app, "--trusted-root", "certificates.json", ...expected, "-f", "json"];
    const { exitCode, stderr } = await bough(words);
    expect(messageIn(stderr)).toContain("expected 1 SCTs, got 0");
    expect(exitCode).toBe(1);
  });

  test("an image that is not signed, and one that is not there", async () => {
    app = `${registry.host}/team/unsigned:1`;
    await bough(["push", "app:1", app]);
    const unsigned = await verify(app);
    expect(messageIn(unsigned.stderr)).toMatch(/team\/unsigned@sha256:[0-9a-f]{64} is not signed$/);
    expect(unsigned.exitCode).toBe(1);
    const missing = await verify(`${registry.host}/team/missing:1`);
    expect(messageIn(missing.stderr)).toContain("there is no image");
    expect(missing.exitCode).toBe(1);
  });

  test("a signature is enough, whatever else is attached", async () => {
    await push(keyless());
    changeBundle((bundle: Bundle) => {
      bundle.dsseEnvelope.signatures[0].sig = payloadOf("another");
    });
    const broken = await verify(app);
    expect(messageIn(broken.stderr)).toContain("it does not verify");
    // The registry has lost the blob of another one.
    const lost = [...registry.manifests.values()]
      .map(({ text }) => JSON.parse(text))
      .findLast((each) => each.subject);
    registry.blobs.delete(lost.layers[0].digest);
    expect(messageIn((await verify(app)).stderr)).toContain("it is damaged");
    await bough(["push", "app:1", app, "--sign", keyless()], { SIGSTORE_ID_TOKEN: token });
    expect(JSON.parse((await verify(app)).stdout).signatures).toHaveLength(1);
  });
});

describe("of what others attach, verify reads so much and no more", () => {
  const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
  const large = Buffer.alloc(4 * 1024 * 1024, " ");
  const layer = { mediaType: bundleType, digest: digestOf(large), size: large.byteLength };

  test.each([
    ["a bundle's manifest with many layers", 1, () => Array(500).fill(layer), { manifests: 1, blobs: 1 }],
    ["many manifests without a bundle", 250, () => [], { manifests: 200, blobs: 0 }],
    ["many bundles that are large", 30, () => [layer], { manifests: 16, blobs: 16 }],
  ])("%s", async (_, referrers, layersOf, expected) => {
    const name = `team/filled${++count}`;
    const image = `${registry.host}/${name}:1`;
    await bough(["push", "app:1", image]);
    const { digest } = JSON.parse((await bough(["index", "inspect", image, "-f", "json"])).stdout);
    registry.blobs.set(layer.digest, large);
    for (let index = 0; index < referrers; index++) {
      const mediaType = "application/vnd.oci.image.manifest.v1+json";
      const manifest = {
        mediaType,
        artifactType: bundleType,
        subject: { digest },
        layers: layersOf(),
        index,
      };
      const text = JSON.stringify(manifest);
      registry.manifests.set(`${name}@${digestOf(text)}`, { mediaType, text });
    }
    const before = registry.requests.length;
    const { exitCode, stderr } = await verify(image);
    expect(exitCode).toBe(1);
    const made = registry.requests.slice(before);
    const read = (kind: string) => made.filter((line) => line.startsWith(`GET /v2/${name}/${kind}/sha256:`));
    expect(read("manifests").length).toBe(expected.manifests);
    expect(read("blobs").length).toBe(expected.blobs);
    if (referrers > 1) expect(messageIn(stderr)).toContain("more is attached to it than is read");
  });
});

describe("what is wrong with a command line is said before anything is built or asked", () => {
  test.each<[string, string, Record<string, string>?]>([
    ["build context --sign", "--sign needs an image that is pushed", { SIGSTORE_ID_TOKEN: token }],
    ["push app:1 localhost:1/app:1 --sign", "there is no identity token to sign with"],
    ["push app:1 localhost:1/app:1 --sign", "permissions: id-token: write", { GITHUB_ACTIONS: "true" }],
    ["push app:1 localhost:1/app:1 --sign", "SIGSTORE_ID_TOKEN: aud: sigstore", { GITLAB_CI: "true" }],
    ["push app:1 localhost:1/app:1 --sign=me", "--sign takes keyless, or FIELD=VALUE"],
    [
      "push app:1 localhost:1/app:1 --sign key=none.key",
      "--sign key=none.key can't be read: no such file or directory\n",
    ],
    ["push app:1 localhost:1/app:1 --sign key=env://NONE", "the variable NONE is not set"],
    ["push app:1 localhost:1/app:1 --sign token=root.json", "not a JSON Web Token with a subject"],
    ["push app:1 localhost:1/app:1 --sign key=a,fulcio-url=https://a.example", "there is no fulcio-url"],
    ["push app:1 localhost:1/app:1 --sign tlog=false", "nothing proves when a certificate was used"],
    ["push app:1 localhost:1/app:1 --sign tlog=maybe", "tlog must be true or false"],
    ["push app:1 localhost:1/app:1 --sign rekor-url=http://a.example", "takes an address with https://"],
    ["verify localhost:1/app:1", "whose signature counts is not given"],
    ["verify localhost:1/app:1 --identity a", "--issuer is missing"],
    ["verify localhost:1/app:1 --identity a --identity-regexp a --issuer b", "cannot be used together"],
    ["verify localhost:1/app:1 --identity-regexp ( --issuer b", "is not a regular expression"],
    ["verify localhost:1/app:1 --key root.json", "is not a public key in PEM"],
    ["verify localhost:1/app:1 --key none.pub", "--key none.pub can't be read: no such file or directory\n"],
    ["verify localhost:1/app:1 --key env://NONE", "--key env://NONE: the variable NONE is not set"],
    ["verify localhost:1/app:1 --key a.pub --identity a", "--key has no identity and no issuer"],
    ["verify localhost:1/app:1 --identity a --issuer b --trusted-root context/a", "is not a trusted root"],
  ])("%s: %s", async (words, message, environment = {}) => {
    const before = sigstore.requests.length;
    const { exitCode, stdout, stderr } = await bough(words.split(" "), environment);
    expect(stderr).toContain(message);
    expect(stdout).toBe("");
    expect(exitCode).toBe(2);
    expect(sigstore.requests.length).toBe(before);
  });
});

test("a signature that can't be stored is stored by the next attempt, and entered into the log once", async () => {
  await push(keyless());
  const { digest } = JSON.parse((await verify(app)).stdout);
  const repository = `${registry.host}/team/again`;
  let later = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + later };
  const bytes = [...registry.manifests].find(([name]) => name.endsWith(`@${digest}`))?.[1].text ?? "";
  const subject = { mediaType: mediaTypes.manifest, digest, size: Buffer.byteLength(bytes) };
  registry.manifests.set(`team/again@${digest}`, { mediaType: mediaTypes.manifest, text: bytes });
  const access = { clock, environment: { BOUGH_RETRY: "0" } };
  const signer = createSigner(
    {
      by: { token: { kind: "given", token: Secret.of(token) }, authority: sigstore.authority },
      ...{ log: sigstore.log, timestampAuthority: undefined, hasCosignTag: true },
    },
    { fetch, ...access },
  );
  /** Refuses manifests whose path matches. */
  const sign = (refused: RegExp, name = repository) => {
    const refusing = Object.assign(
      async (input: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]) =>
        init?.method === "PUT" && refused.test(String(input))
          ? Response.json({ errors: [{ code: "DENIED" }] }, { status: 403 })
          : await fetch(input, init),
      { preconnect: fetch.preconnect },
    );
    const referrers = openReferrers(`docker://${name}`, {
      ...{ fetch: refusing, ...access, credentials: undefined },
    });
    return signer.sign(subject, name, referrers, new AbortController().signal);
  };
  const entries = () => sigstore.requests.filter((request) => /^POST \/log\//.test(request)).length;
  const before = entries();
  await expect(sign(/\/manifests\/sha256:/)).rejects.toThrow(`signing ${repository}@${digest} failed`);
  await expect(sign(/\/manifests\/sha256-/)).rejects.toThrow("403");
  const { identity } = await sign(/^$/);
  expect(identity).toBe(workflow);
  // One for the bundle, and one for the signature under cosign's tag.
  expect(entries() - before).toBe(2);
  expect((await verify(`${repository}@${digest}`)).exitCode).toBe(0);

  // A certificate is valid for minutes, and the push to another repository takes an hour.
  later = 3_600_000;
  sigstore.now = () => new Date(clock.now());
  await sign(/^$/, `${registry.host}/team/later`);
  registry.manifests.set(`team/later@${digest}`, { mediaType: mediaTypes.manifest, text: bytes });
  const { signatures } = JSON.parse((await verify(`${registry.host}/team/later@${digest}`)).stdout);
  expect(signatures.map(({ kind }: { kind: string }) => kind)).toEqual(["bundle", "tag"]);
});

describe("a push that can't be signed leaves the tag as it was", () => {
  test.each([
    ["the authority refuses", (path: string) => path.startsWith("/authority/"), 403],
    ["the log is broken", (path: string) => path.startsWith("/log/"), 500],
  ])("%s", async (_, isMeant, status) => {
    sigstore.respond = (path) =>
      isMeant(path) ? Response.json({ message: "not today" }, { status }) : undefined;
    const { exitCode, stderr } = await push(keyless());
    expect(stderr).toContain("signing ");
    expect(stderr).toContain("not today");
    expect(stderr).not.toContain(token);
    expect(exitCode).toBe(1);
    expect(registry.manifests.has(app.slice(registry.host.length + 1))).toBe(false);
  });

  test("a response of the log that was lost is found again", async () => {
    let isLost = false;
    sigstore.respond = () => undefined;
    const lossy: typeof fetch = Object.assign(
      async (input: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]) => {
        const response = await fetch(input, init);
        if (isLost || init?.method !== "POST" || !String(input).includes("/log/")) return response;
        isLost = true;
        return new Response("", { status: 502 });
      },
      { preconnect: fetch.preconnect },
    );
    app = `${registry.host}/team/app${++count}:1`;
    const { exitCode } = await runBough(["--local", "push", "app:1", app, "--sign", keyless()], {
      workingDirectory: places,
      environment: { BOUGH_HOME: home, SIGSTORE_ID_TOKEN: token },
      fetch: lossy,
    });
    expect(exitCode).toBe(0);
    expect(sigstore.requests.at(-1)).toMatch(/^GET \/log\/api\/v1\/log\/entries\/\d+$/);
    expect((await verify(app)).exitCode).toBe(0);
  });
});
