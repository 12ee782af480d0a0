/**
 * A Debian base image and a few packages for it, from the machine's own package sources. Made once (about a minute)
 * and kept outside the tree.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../support/kept-results.ts";

export interface DebianBase {
  /** For skopeo: `docker-archive:<path>`. */
  source: string;
  /** A flat package repository, to be served over HTTP: `Packages` and the files that it names. */
  packages: string;
}

const suite = "bookworm";

/** The packages that Dockerfiles of the cases install, with their dependencies. */
const installable = ["iputils-ping", "jq", "wget"];

/** Files that Debian's slim images leave out, too. */
const leftOut = ["doc", "info", "locale", "man"].map((name) => `/usr/share/${name}/*`);

/**
 * Leaves them out from the first dpkg on. As an option of mmdebstrap they would start a Python program for each package that it
 * unpacks before, which takes as long as everything else.
 */
const leaveOut = [
  `printf 'path-exclude=%s\\n' ${leftOut.map((path) => `'${path}'`).join(" ")} > "$1/etc/dpkg/dpkg.cfg.d/slim"`,
  ...leftOut.map((path) => `rm -rf "$1"${path}`),
].join("; ");

const recipe = { suite, installable, leftOut, version: 6 };

export async function findDebianBase(): Promise<DebianBase> {
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);
  const cache = cacheDirectory();
  const directory = join(cache, `debian-${suite}-${digest}`);
  if (!existsSync(directory)) {
    mkdirSync(cache, { recursive: true });
    const unfinished = mkdtempSync(join(cache, "unfinished-"));
    try {
      await makeBase(unfinished);
      // Another run may have been faster.
      if (!existsSync(directory)) renameSync(unfinished, directory);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  return { source: `docker-archive:${join(directory, "base.tar")}`, packages: join(directory, "packages") };
}

async function makeBase(directory: string): Promise<void> {
  const packages = join(directory, "packages");
  const layer = join(directory, "layer.tar");
  mkdirSync(packages);
  const download = `chroot "$1" apt-get install --yes --download-only --no-install-recommends ${installable.join(" ")}`;
  await run([
    "mmdebstrap",
    "--variant=minbase",
    `--extract-hook=${leaveOut}`,
    "--dpkgopt=force-unsafe-io",
    // Images hold no device files, and an ordinary user could not unpack any.
    "--skip=output/dev",
    // As in Debian's images: /bin is a link from the beginning, so that no perl is needed to make it one.
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    "--include=usr-is-merged",
    // Keeps only the packages downloaded below, not those from which the base was made.
    '--customize-hook=chroot "$1" apt-get clean',
    `--customize-hook=${download}`,
    `--customize-hook=sync-out /var/cache/apt/archives ${packages}`,
    suite,
    layer,
    ...(await packageSources()),
  ]);
  await writePackageIndex(packages);
  const config = {
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    config: { Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], Cmd: ["bash"] },
    // One entry per layer: buildah counts them.
    history: [{ created_by: "mmdebstrap" }],
    rootfs: { type: "layers", diff_ids: [`sha256:${(await sha256(layer)).digest}`] },
  };
  const manifest = [{ Config: "config.json", RepoTags: [`debian:${suite}-slim`], Layers: ["layer.tar"] }];
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  writeFileSync(join(directory, "manifest.json"), JSON.stringify(manifest));
  const members = ["manifest.json", "config.json", "layer.tar"];
  await run([
    "tar",
    "--create",
    `--file=${join(directory, "base.tar")}`,
    `--directory=${directory}`,
    ...members,
  ]);
  for (const member of members) rmSync(join(directory, member));
}

/** Returns the lines of this machine's package sources for the suite. If there are none, mmdebstrap uses its default. */
async function packageSources(): Promise<string[]> {
  const format = "deb $(SITE) $(RELEASE) $(COMPONENT)";
  const lines = await run(["apt-get", "indextargets", "--format", format, "Created-By: Packages"]);
  const releases = [suite, `${suite}-updates`, `${suite}-security`];
  return [...new Set(lines.split("\n"))].filter((line) => releases.includes(line.split(" ")[2] ?? ""));
}

async function writePackageIndex(directory: string): Promise<void> {
  const stanzas: string[] = [];
  for (const name of readdirSync(directory).sort()) {
    const path = join(directory, name);
    if (!name.endsWith(".deb")) {
      rmSync(path, { recursive: true });
      continue;
    }
    // apt decodes names before it requests them, so the name must not have an escape.
    const plain = name.replaceAll("%3a", ".");
    renameSync(path, join(directory, plain));
    const { digest, size } = await sha256(join(directory, plain));
    const control = await run(["dpkg-deb", "--field", join(directory, plain)]);
    stanzas.push(`${control.trim()}\nFilename: ./${plain}\nSize: ${size}\nSHA256: ${digest}\n`);
  }
  writeFileSync(join(directory, "Packages"), stanzas.join("\n"));
}

async function sha256(path: string): Promise<{ digest: string; size: number }> {
  const hasher = new Bun.CryptoHasher("sha256");
  const file = Bun.file(path);
  for await (const chunk of file.stream()) hasher.update(chunk);
  return { digest: hasher.digest("hex"), size: file.size };
}

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${stderr.slice(-2000)}`);
  return stdout;
}
