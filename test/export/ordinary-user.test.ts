/** Exports from the engine of a user without privileges: the compiled program, which enters a user namespace. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { diskUsage } from "../../src/engine/system/disk.ts";
import { readTree, type Tree } from "../differential/tree.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

let user: OrdinaryUser;
let registry: Registry;
let tree: Tree;

/** Runs bough as the user; `home` is the engine's directory in the user's home. */
async function bough(home: string, ...words: string[]): Promise<string> {
  const child = Bun.spawn(
    [
      ...user.prefix,
      ...["env", "-i", `--chdir=${user.home}`, `PATH=${process.env.PATH}`, `HOME=${user.home}`],
      ...[`BOUGH_HOME=${user.home}/${home}`, `TMPDIR=${user.home}`],
      ...[`${user.home}/bough`, "-q", ...words],
    ],
    { stdout: "pipe", stderr: "pipe", stdin: "ignore" },
  );
  const { exitCode, stdout, stderr } = await endOf(child);
  if (exitCode !== 0) throw new Error(`bough ${words.join(" ")}: ${stderr}`);
  return stdout.trim();
}

async function treeOf(home: string, image: string): Promise<Tree> {
  const file = `${crypto.randomUUID()}.tar`;
  await bough(home, "images", "export", image, `tar:${file}`);
  return readTree(Bun.file(join(user.home, file)).stream());
}

beforeAll(async () => {
  user = makeOrdinaryUser();
  registry = await Registry.start();
  user.giveBough();
  const [layout, context] = [temporaryDirectory(), temporaryDirectory()];
  await makeBusyboxLayout(layout);
  writeFiles(context, {
    Dockerfile: [
      "FROM base:1",
      "RUN mkdir -p /a/b && seq 900000 > /a/large && echo x > /a/b/x && echo y > /a/y && ln /a/y /a/z && mkfifo /a/pipe && chown 7:50 /a/y",
      "RUN rm -r /a/b && mkdir /a/b && echo new > /a/b/new && rm /etc/group && chmod 4711 /a/b/new",
    ].join("\n"),
  });
  await bough("engine", "images", "import", `oci:${user.give(layout, "layout")}:latest`, "--tag", "base:1");
  await bough("engine", "build", user.give(context, "context"), "--tag", "app:1");
  tree = await treeOf("engine", "app:1");
});
afterAll(async () => {
  await registry?.stop();
  user?.remove();
});

test("deleted files are not in the export, and owners are those of the image", () => {
  expect([...tree.keys()].filter((path) => path.startsWith("/a/b/"))).toEqual(["/a/b/new"]);
  expect(tree.has("/etc/group")).toBe(false);
  expect(tree.get("/a/y")?.line).toContain(" 7:50 ");
});

test.each([
  "oci:out:1",
  "oci-archive:out.tar:1",
  "docker-archive:docker.tar",
  "dir:directory",
  "docker://REGISTRY/app:1",
])("an image that is exported and imported again has the same files: %s", async (given) => {
  const destination = given.replace("REGISTRY", registry.host);
  await bough("engine", "images", "export", "app:1", destination);
  const home = `other-${crypto.randomUUID()}`;
  const place = destination.replace(/^([a-z-]+:)(?!\/\/)/, `$1${user.home}/`);
  await bough(home, "images", "import", place, "--tag", "back:1");
  expect(await treeOf(home, "back:1")).toEqual(tree);
});

test("an imported archive of docker save is kept as its files, and its layers have the same digests again", async () => {
  const layersOf = (file: string): string[] => {
    const { stdout } = Bun.spawnSync(["skopeo", "inspect", `docker-archive:${join(user.home, file)}`]);
    return JSON.parse(stdout.toString()).Layers;
  };
  await bough("engine", "images", "export", "app:1", "docker-archive:first.tar");
  await bough("kept", "images", "import", `docker-archive:${user.home}/first.tar`, "--tag", "back:1");
  await bough("kept", "images", "export", "back:1", "docker-archive:second.tar");
  expect(layersOf("second.tar")).toEqual(layersOf("first.tar"));
  const bytesIn = (directory: string) => diskUsage(join(user.home, "kept/engine", directory));
  expect(bytesIn("blobs")).toBeWithin(1, bytesIn("layers") / 50);
});

test("archives belong to the user, and files of a tree to their owners in the user namespace", async () => {
  await bough("engine", "images", "export", "app:1", "rootfs:root");
  await bough("engine", "images", "export", "app:1", "oci-archive:mine.tar");
  const { uid } = statSync(user.home);
  expect(statSync(join(user.home, "mine.tar")).uid).toBe(uid);
  expect(statSync(join(user.home, "root/bin/busybox")).uid).toBe(uid);
  expect(statSync(join(user.home, "root/a/y")).uid).toBeGreaterThan(uid);
});

test("a directory of another user is refused before the build", async () => {
  const output = ["-o", "type=oci,dest=/etc/image.tar"];
  const checked = bough("engine", "build", "--check", `${user.home}/context`, ...output);
  await expect(checked).rejects.toThrow("cannot write /etc/image.tar: permission denied");
});

test("a scanner sees the image, and what is pushed is signed", async () => {
  const scanner = temporaryDirectory();
  const statement = { _type: "https://in-toto.io/Statement/v1", predicateType: "https://spdx.dev/Document" };
  const text = JSON.stringify({ ...statement, predicate: { name: "NAME" } });
  writeFiles(scanner, {
    Dockerfile: 'FROM base:1\nCOPY --chmod=755 scan /scan\nENTRYPOINT ["/scan"]\n',
    scan: `#!/bin/sh -e\nsed "s/NAME/$(cat $BUILDKIT_SCAN_SOURCE/a/b/new)/" > $BUILDKIT_SCAN_DESTINATION/sbom.spdx.json <<'TEXT'\n${text}\nTEXT\n`,
  });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const keys = temporaryDirectory();
  writeFiles(keys, {
    "own.key": privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    "own.pub": publicKey.export({ type: "spki", format: "pem" }).toString(),
  });
  const [given, name] = [user.give(keys, "keys"), `${registry.host}/scanned:1`];
  await bough("engine", "build", user.give(scanner, "scanner"), "--docker", "--tag", "scanner:1");
  const words = ["--docker", "--tag", name, "--push", "--sbom=generator=scanner:1"];
  await bough("engine", "build", `${user.home}/context`, ...words, "--sign", `key=${given}/own.key`);
  const digest = await bough("engine", "verify", name, "--key", `${given}/own.pub`);
  const manifest = async (reference: string) => {
    const accept = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json";
    return fetch(`http://${registry.host}/v2/scanned/manifests/${reference}`, { headers: { accept } });
  };
  const index = await manifest("1");
  expect(index.headers.get("docker-content-digest")).toBe(digest);
  const { manifests } = (await index.json()) as { manifests: { digest: string }[] };
  const attestations = await manifest(manifests[1]?.digest ?? "");
  const { layers } = (await attestations.json()) as { layers: { digest: string }[] };
  const recorded = await fetch(`http://${registry.host}/v2/scanned/blobs/${layers[0]?.digest}`);
  expect(await recorded.json()).toMatchObject({ predicate: { name: "new" } });
});
