/** Debian packages with the files of a release's archive. They are written without dpkg: the same files give the same bytes. */
import { type ArchiveEntry, contentOf, sortEntries } from "./archive-entry.ts";
import type { Source } from "./commit.ts";
import { writeTar } from "./tar.ts";
import type { Target } from "./targets.ts";

/** The address is not one: releases have none that could stand here. */
const maintainer = "The bough developers <bough@localhost.invalid>";

/** Returns the package's file name; `undefined` for systems without such packages. */
export function debName({ format }: Target, { version }: Pick<Source, "version">): string | undefined {
  const isDebian = format.container === "ELF" && !format.loader?.includes("musl");
  return isDebian ? `bough_${version}_${debArchitecture(format)}.deb` : undefined;
}

/**
 * Returns the package of a target. `files`: those of its archive, by their paths in it. `compress` makes gzip, which every dpkg
 * reads.
 */
export function writeDeb(
  target: Target,
  source: Source,
  files: readonly ArchiveEntry[],
  compress: (content: Uint8Array<ArrayBuffer>) => Uint8Array,
): Uint8Array<ArrayBuffer> {
  const { date } = source;
  const documents: ArchiveEntry[] = [
    document("copyright", copyright(files)),
    document("changelog.gz", Bun.gzipSync(changelog(source), { level: 9 })),
  ];
  const installed = sortEntries(
    withDirectories([...files.flatMap(install), ...documents, lintianOverrides()]),
  );
  const sums = installed.flatMap((entry) =>
    entry.type === "file" ? [`${md5(contentOf(entry))}  ${entry.path.slice(2)}\n`] : [],
  );
  const kibibytes = installed.reduce(
    (sum, entry) => sum + Math.max(1, Math.ceil(contentOf(entry).byteLength / 1024)),
    0,
  );
  const control: ArchiveEntry[] = [
    { type: "directory", path: ".", mode: 0o755 },
    {
      type: "file",
      path: "./control",
      mode: 0o644,
      content: controlFile(target, source, kibibytes),
    },
    { type: "file", path: "./md5sums", mode: 0o644, content: sums.join("") },
  ];
  return writeAr(
    [
      ["debian-binary", new TextEncoder().encode("2.0\n")],
      ["control.tar.gz", compress(writeTar(control, date))],
      ["data.tar.gz", compress(writeTar(installed, date))],
    ],
    date,
  );
}

function debArchitecture({ architecture }: Target["format"]): string {
  return architecture === "x64" ? "amd64" : architecture;
}

function controlFile({ format }: Target, { version }: Source, installedKibibytes: number): string {
  return [
    "Package: bough",
    `Version: ${version}`,
    `Architecture: ${debArchitecture(format)}`,
    `Maintainer: ${maintainer}`,
    `Installed-Size: ${installedKibibytes}`,
    "Depends: libc6 (>= 2.17)",
    // What the embedded engine needs; with a service bough needs none of it.
    "Recommends: runc | crun, skopeo, slirp4netns, uidmap, ca-certificates",
    "Suggests: crun, git, bash-completion",
    "Section: devel",
    "Priority: optional",
    "Description: build container images from Dockerfiles without a daemon",
    " bough builds what docker build builds, with one executable and without root:",
    " on its embedded engine, or on an image service over HTTP. Each RUN becomes",
    " a layer that later builds reuse.",
    " .",
    " The recommended packages are what the embedded engine needs.",
    "",
  ].join("\n");
}

/** Where Debian has a file of the archive. */
function install(entry: ArchiveEntry): ArchiveEntry[] {
  const { path } = entry;
  const content = contentOf(entry);
  const [, section] = /^man\/[^/]+\.(\d)$/.exec(path) ?? [];
  if (section !== undefined) {
    const page = `./usr/share/man/man${section}/${path.slice("man/".length)}.gz`;
    return [file(page, Bun.gzipSync(new Uint8Array(content), { level: 9 }))];
  }
  switch (path) {
    case "bough":
      return [{ type: "file", path: "./usr/bin/bough", mode: 0o755, content }];
    case "completions/bough.bash":
      return [file("./usr/share/bash-completion/completions/bough", content)];
    case "completions/_bough":
      return [file("./usr/share/zsh/vendor-completions/_bough", content)];
    case "completions/bough.fish":
      return [file("./usr/share/fish/vendor_completions.d/bough.fish", content)];
    case "LICENSE":
    case "THIRD-PARTY-LICENSES.md":
      // Both are in the file copyright.
      return [];
    case "README.md":
      return [document(path, content)];
    default:
      throw new Error(`${path} has no place in a Debian package (deb.ts)`);
  }
}

function file(path: string, content: Uint8Array | string): ArchiveEntry {
  return { type: "file", path, mode: 0o644, content };
}

function document(name: string, content: Uint8Array | string): ArchiveEntry {
  return file(`./usr/share/doc/bough/${name}`, content);
}

/** dpkg makes no directories that the package does not have. */
function withDirectories(entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  const above = entries.flatMap(({ path }) =>
    path.split("/").flatMap((_, index, parts) => (index === 0 ? [] : [parts.slice(0, index).join("/")])),
  );
  const directories = [...new Set(above)].map(
    (path): ArchiveEntry => ({ type: "directory", path, mode: 0o755 }),
  );
  return [...directories, ...entries];
}

/** https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/ */
function copyright(files: readonly ArchiveEntry[]): string {
  const textOf = (path: string) => {
    const entry = files.find((each) => each.path === path);
    if (entry === undefined) throw new Error(`the archive has no ${path}`);
    return new TextDecoder().decode(contentOf(entry));
  };
  const indented = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => (line.trim() === "" ? " ." : ` ${line.trimEnd()}`));
  const license = textOf("LICENSE");
  const [owner = ""] = /(?<=^Copyright \(c\) ).*$/m.exec(license) ?? [];
  return [
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
    "Upstream-Name: bough",
    "Comment: The executable holds other software. Its licences:",
    ...indented(textOf("THIRD-PARTY-LICENSES.md")),
    "",
    "Files: *",
    `Copyright: ${owner}`,
    "License: Expat",
    ...indented(license.slice(license.indexOf("Permission is hereby"))),
    "",
  ].join("\n");
}

function changelog({ version, commit, date }: Source): string {
  const time = date.toUTCString().replace("GMT", "+0000");
  return [
    `bough (${version}) stable; urgency=medium`,
    "",
    `  * Built from commit ${commit}.`,
    "  * bough help changelog describes what is new.",
    "",
    ` -- ${maintainer}  ${time}`,
    "",
  ].join("\n");
}

function lintianOverrides(): ArchiveEntry {
  const overrides = [
    "# bough's code follows the sections of the executable: strip would remove it",
    "bough: unstripped-binary-or-object [usr/bin/bough]",
    "# they are parts of the runtime",
    "bough: embedded-library *",
    "# the runtime is linked so",
    "bough: hardening-no-pie [usr/bin/bough]",
    "bough: hardening-no-relro [usr/bin/bough]",
    "# --sbom reads the database of an image",
    "bough: uses-dpkg-database-directly [usr/bin/bough]",
    "",
  ];
  return file("./usr/share/lintian/overrides/bough", overrides.join("\n"));
}

function md5(content: Uint8Array): string {
  return new Bun.CryptoHasher("md5").update(content).digest("hex");
}

/** Returns an archive in the format of ar(5). */
function writeAr(
  members: readonly (readonly [name: string, content: Uint8Array])[],
  date: Date,
): Uint8Array<ArrayBuffer> {
  const seconds = Math.floor(date.getTime() / 1000);
  const parts = members.flatMap(([name, content]) => [
    `${name.padEnd(16)}${String(seconds).padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}${String(content.byteLength).padEnd(10)}\`\n`,
    content,
    content.byteLength % 2 === 0 ? "" : "\n",
  ]);
  return new Uint8Array(Buffer.concat(["!<arch>\n", ...parts].map((part) => Buffer.from(part))));
}
