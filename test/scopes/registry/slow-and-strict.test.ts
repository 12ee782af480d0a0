/** Registries that want a token, are slow, limit requests or are full: what two homes make of a cache there. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { type Front, startFront } from "./front.ts";
import { buildIn, newHome } from "./homes.ts";

let registry: Registry;
let source: string;
let text: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  text = `FROM ${registry.host}/base:1\nRUN echo one > /one\nRUN cat /one > /two\n`;
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: text });
});
afterAll(() => registry.stop());

const password = Buffer.from("ann:secret").toString("base64");

/** Refuses requests without a token for their repository and what they do, which the same server gives for a password. */
function wantTokens(front: Front): Front["intercept"] {
  return ({ url, method, headers }) => {
    const { pathname, searchParams } = new URL(url);
    const given = headers.get("authorization") ?? "";
    if (pathname === "/token") {
      if (given !== `Basic ${password}`) return new Response("{}", { status: 401 });
      const scopes = searchParams.getAll("scope").join(" ");
      return Response.json({ token: Buffer.from(scopes).toString("base64url") });
    }
    const scopes = Buffer.from(given.replace(/^Bearer /, ""), "base64url").toString();
    if (pathname === "/v2/" && scopes !== "") return undefined;
    const name = /^\/v2\/(.+?)\/(?:blobs|manifests)\//.exec(pathname)?.[1] ?? "";
    const [, actions = ""] = new RegExp(`repository:${name}:([a-z,]+)`).exec(scopes) ?? [];
    const action = ["GET", "HEAD"].includes(method) ? "pull" : "push";
    if (actions.split(",").includes(action)) return undefined;
    const challenge = `Bearer realm="http://${front.host}/token",service="registry"`;
    return new Response("{}", { status: 401, headers: { "www-authenticate": challenge } });
  };
}

/** Refuses the first request of each kind. */
function limitRequests(): Front["intercept"] {
  const seen = new Set<string>();
  return ({ url, method }) => {
    const kind = `${method} ${/\/(blobs|manifests)\//.exec(url)?.[1]}`;
    if (seen.has(kind)) return undefined;
    seen.add(kind);
    return new Response("slower", { status: 429 });
  };
}

async function delay(): Promise<undefined> {
  await Bun.sleep(20);
}

/** The types that GitLab's registry and others know. */
const knownTypes =
  /^application\/vnd\.oci\.image\.(manifest\.v1\+json|config\.v1\+json|layer\.v1\.tar(\+(gzip|zstd))?)$/;

/** Refuses manifests with types that it does not know, and with a configuration that is not an image's. */
function knowImages(front: Front): Front["intercept"] {
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "PUT" || !pathname.includes("/manifests/")) return undefined;
    const manifest = (await request.clone().json()) as {
      mediaType: string;
      artifactType?: string;
      config: { mediaType: string; digest: string };
      layers: { mediaType: string }[];
    };
    const types = [manifest, manifest.config, ...manifest.layers].map(({ mediaType }) => mediaType);
    const blob = pathname.replace(/\/manifests\/.*/, `/blobs/${manifest.config.digest}`);
    const config = await front.forward(new Request(`http://${front.host}${blob}`));
    const { os, rootfs } = (await config.json()) as { os?: unknown; rootfs?: { type?: unknown } };
    if (types.every((type) => knownTypes.test(type)) && manifest.artifactType === undefined)
      if (typeof os === "string" && rootfs?.type === "layers") return undefined;
    return Response.json({ errors: [{ code: "MANIFEST_INVALID" }] }, { status: 400 });
  };
}

test.each<[string, string, (front: Front) => Front["intercept"]]>([
  ["wants tokens", "tokens", wantTokens],
  ["limits requests", "limits", limitRequests],
  ["is slow", "slow", () => delay],
  ["knows images only", "images", knowImages],
])(
  "a registry that %s has a cache as any other",
  async (_, name, behave) => {
    await using front = startFront(registry);
    const auth = join(temporaryDirectory(), "auth.json");
    writeFileSync(auth, JSON.stringify({ auths: { [front.host]: { auth: password } } }));
    const environment = { REGISTRY_AUTH_FILE: auth };
    const ref = `type=registry,ref=${front.host}/${name}:main`;
    const words = ["--docker", `--cache-from=${ref}`, `--cache-to=${ref},mode=max`];
    writeFileSync(join(source, "Dockerfile"), text);
    front.intercept = behave(front);
    const made = await buildIn(newHome(), source, words, { environment });
    expect([made.exitCode, made.runs.length], made.stderr).toEqual([0, 2]);
    // A step that runs needs the layers below it.
    writeFileSync(join(source, "Dockerfile"), text.replace("> /two", "> /three"));
    front.intercept = behave(front);
    const found = await buildIn(newHome(), source, words, { environment });
    expect([found.exitCode, found.runs], found.stderr).toEqual([0, ["RUN cat /one > /three"]]);
    for (const text of ["[WARN] cache", "secret", password])
      expect(`${made.stderr}${found.stderr}`).not.toContain(text);
  },
  120_000,
);

test.each<[string, number]>([
  ["is full", 507],
  ["may not be written", 403],
])(
  "a registry that %s costs a warning",
  async (_, status) => {
    await using front = startFront(registry);
    const ref = `type=registry,ref=${front.host}/refused:main`;
    const words = ["--docker", `--cache-from=${ref}`, `--cache-to=${ref},mode=max`];
    writeFileSync(join(source, "Dockerfile"), text);
    front.intercept = ({ method }) =>
      ["GET", "HEAD"].includes(method) ? undefined : new Response("no", { status });
    const built = await buildIn(newHome(), source, words);
    expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 2]);
    expect(built.stderr).toMatch(
      new RegExp(`\\[WARN\\] cache: nothing is written to \\S+/refused:main: .*${status}`),
    );
  },
  120_000,
);
