/**
 * A small base image for tests and the demo, made without a network: Debian's static busybox with a link for every
 * applet, `/etc/passwd`, `/etc/group`, and the usual empty directories. Like Docker's own busybox image it has
 * neither `/proc` nor `/sys`, so that tests notice mount points that a sandbox leaves behind.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface BusyboxImageOptions {
  /** The static busybox of the image. */
  busybox?: string;
  tag?: string;
  /** Environment of the image's configuration, as `NAME=value`. */
  environment?: readonly string[];
  workingDirectory?: string;
  /** More of the image's configuration, such as `User` and `OnBuild`. */
  configuration?: Readonly<Record<string, unknown>>;
  author?: string;
  /** Changes the root file system before it is packed. */
  prepare?: (root: string, architecture: string) => void;
  /** Makes an index with an image for each of these (`amd64`, `arm64`, ...); by default a single image for this machine. */
  architectures?: readonly string[];
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

/** The blobs of a layout, by digest. */
type Blobs = Map<string, Uint8Array>;

interface Image {
  described: Descriptor;
  blobs: Blobs;
}

/** Images by their options. Most callers need the same image, which takes a tenth of a second to make. */
const made = new Map<string, Image>();

/** Writes an OCI image layout into `directory`, making it if needed. Returns its name for skopeo: `oci:<directory>:<tag>`. */
export async function makeBusyboxLayout(
  directory: string,
  options: BusyboxImageOptions = {},
): Promise<string> {
  const { tag = "latest", ...content } = options;
  mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
  const key = JSON.stringify(content);
  const known = options.prepare === undefined ? made.get(key) : undefined;
  const { described, blobs } = known ?? makeImage(content);
  if (options.prepare === undefined) made.set(key, { described, blobs });
  for (const [hash, bytes] of blobs) writeFileSync(join(directory, "blobs", "sha256", hash), bytes);
  const annotations = { "org.opencontainers.image.ref.name": tag };
  const index = { schemaVersion: 2, manifests: [{ ...described, annotations }] };
  writeFileSync(join(directory, "index.json"), encode(index));
  writeFileSync(join(directory, "oci-layout"), encode({ imageLayoutVersion: "1.0.0" }));
  return `oci:${directory}:${tag}`;
}

function makeImage(options: BusyboxImageOptions): Image {
  const blobs: Blobs = new Map();
  const { architectures } = options;
  const described =
    architectures === undefined
      ? addImage(blobs, process.arch === "arm64" ? "arm64" : "amd64", options)
      : addIndex(blobs, architectures, options);
  return { described, blobs };
}

function addIndex(blobs: Blobs, architectures: readonly string[], options: BusyboxImageOptions): Descriptor {
  const mediaType = "application/vnd.oci.image.index.v1+json";
  const manifests = architectures.map((architecture) => ({
    ...addImage(blobs, architecture, options),
    platform: { architecture, os: "linux" },
  }));
  return addBlob(blobs, encode({ schemaVersion: 2, mediaType, manifests }), mediaType);
}

function addImage(blobs: Blobs, architecture: string, options: BusyboxImageOptions): Descriptor {
  const work = mkdtempSync(join(tmpdir(), "bough-root-"));
  try {
    makeRoot(work, options.busybox ?? "/bin/busybox");
    options.prepare?.(work, architecture);
    const layer = pack(work);
    const config = encode({
      architecture,
      os: "linux",
      created: "2024-01-01T00:00:00Z",
      ...(options.author === undefined ? {} : { author: options.author }),
      config: {
        Env: options.environment ?? ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        Cmd: ["sh"],
        ...(options.workingDirectory === undefined ? {} : { WorkingDir: options.workingDirectory }),
        ...options.configuration,
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
      // `buildah bud --layers` needs one entry for each layer.
      history: [{ created: "2024-01-01T00:00:00Z", created_by: "busybox" }],
    });
    const manifest = encode({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: addBlob(blobs, config, "application/vnd.oci.image.config.v1+json"),
      layers: [
        addBlob(blobs, Bun.gzipSync(layer, { level: 1 }), "application/vnd.oci.image.layer.v1.tar+gzip"),
      ],
    });
    return addBlob(blobs, manifest, "application/vnd.oci.image.manifest.v1+json");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function makeRoot(root: string, busybox: string): void {
  const directories = ["bin", "dev", "etc", "home", "tmp", "usr/bin", "usr/sbin", "var", "root"];
  for (const name of directories) mkdirSync(join(root, name), { recursive: true });
  for (const name of ["", "usr", ...directories]) chmodSync(join(root, name), 0o755);
  chmodSync(join(root, "tmp"), 0o1777);
  chmodSync(join(root, "root"), 0o700);
  cpSync(busybox, join(root, "bin/busybox"), { dereference: true });
  chmodSync(join(root, "bin/busybox"), 0o755);
  for (const applet of run([busybox, "--list"]).toString().split("\n")) {
    if (applet !== "" && applet !== "busybox") symlinkSync("busybox", join(root, "bin", applet));
  }
  writeFileSync(
    join(root, "etc/passwd"),
    "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/sh\n",
  );
  writeFileSync(
    join(root, "etc/group"),
    "root:x:0:\ndaemon:x:1:\ntty:x:5:\nusers:x:100:nobody\nnogroup:x:65534:\n",
  );
}

/** Packs a tree. The same tree gives the same bytes, so that separate layouts contain the same image. */
function pack(root: string): Uint8Array<ArrayBuffer> {
  const normalized = ["--sort=name", "--mtime=@1704067200", "--owner=0", "--group=0", "--numeric-owner"];
  const format = [
    "--format=posix",
    "--pax-option=delete=atime,delete=ctime",
    "--xattrs",
    "--xattrs-include=*",
  ];
  return run(["tar", ...normalized, ...format, "-C", root, "-cf", "-", "."]);
}

function run(command: string[]): Uint8Array<ArrayBuffer> & Buffer {
  const result = Bun.spawnSync(command);
  if (!result.success) throw new Error(`${command.join(" ")}: ${result.stderr.toString()}`);
  return result.stdout as Uint8Array<ArrayBuffer> & Buffer;
}

function addBlob(blobs: Blobs, content: Uint8Array, mediaType: string): Descriptor {
  const hash = sha256(content);
  blobs.set(hash, content);
  return { mediaType, digest: `sha256:${hash}`, size: content.byteLength };
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function sha256(content: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}
