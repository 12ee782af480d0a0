/**
 * A small base image for tests and the demo, made without a network: Debian's static busybox with a link for every
 * applet, `/etc/passwd`, `/etc/group`, and the usual empty directories. Like Docker's own busybox image it has
 * neither `/proc` nor `/sys`, so that a sandbox that leaves mount points behind gives itself away.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface BusyboxImageOptions {
  /** The static busybox to put in. */
  busybox?: string;
  tag?: string;
  /** Environment of the image's configuration, as `NAME=value`. */
  environment?: readonly string[];
  workingDirectory?: string;
  /** Changes the root file system before it is packed. */
  prepare?: (root: string) => void;
}

/** Writes an OCI image layout into `directory` (made where missing); answers its name for skopeo: `oci:<directory>:<tag>`. */
export async function makeBusyboxLayout(
  directory: string,
  options: BusyboxImageOptions = {},
): Promise<string> {
  const { busybox = "/bin/busybox", tag = "latest" } = options;
  mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
  const work = mkdtempSync(join(directory, "root-"));
  try {
    makeRoot(work, busybox);
    options.prepare?.(work);
    const layer = pack(work);
    const compressed = Bun.gzipSync(layer);
    const config = encode({
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      os: "linux",
      created: "2024-01-01T00:00:00Z",
      config: {
        Env: options.environment ?? ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        Cmd: ["sh"],
        ...(options.workingDirectory === undefined ? {} : { WorkingDir: options.workingDirectory }),
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
    });
    const manifest = encode({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: writeBlob(directory, config, "application/vnd.oci.image.config.v1+json"),
      layers: [writeBlob(directory, compressed, "application/vnd.oci.image.layer.v1.tar+gzip")],
    });
    const described = writeBlob(directory, manifest, "application/vnd.oci.image.manifest.v1+json");
    const annotations = { "org.opencontainers.image.ref.name": tag };
    writeFileSync(
      join(directory, "index.json"),
      encode({ schemaVersion: 2, manifests: [{ ...described, annotations }] }),
    );
    writeFileSync(join(directory, "oci-layout"), encode({ imageLayoutVersion: "1.0.0" }));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return `oci:${directory}:${tag}`;
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

/** The same tree gives the same bytes, so that two layouts made apart are one image. */
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

function writeBlob(directory: string, content: Uint8Array, mediaType: string) {
  const hash = sha256(content);
  writeFileSync(join(directory, "blobs", "sha256", hash), content);
  return { mediaType, digest: `sha256:${hash}`, size: content.byteLength };
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function sha256(content: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}
