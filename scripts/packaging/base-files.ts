import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "./archive-entry.ts";
import type { UnpackedPackage } from "./debian-packages.ts";

/** Libraries that the executable and its name look-ups load. glibc's other libraries are for programs that the image lacks. */
const libraries = [
  "libc.so.6",
  "libdl.so.2",
  "libm.so.6",
  "libnss_dns.so.2",
  "libnss_files.so.2",
  "libpthread.so.0",
  "libresolv.so.2",
];

/** An id that no user of the host is likely to have. */
export const userId = 65532;
export const home = "/home/bough";
export const workingDirectory = "/work";
export const certificates = "/etc/ssl/certs/ca-certificates.crt";

interface BasePackages {
  glibc: UnpackedPackage;
  certificates: UnpackedPackage;
}

/** Returns the root file system below the executable: glibc, certificates, one user, and the user's directories. */
export function baseFiles(packages: BasePackages, triplet: string, loader: string): ArchiveEntry[] {
  const { glibc } = packages;
  const loaderName = loader.slice(loader.lastIndexOf("/") + 1);
  const entries: ArchiveEntry[] = [
    ...libraries.map((name) => executable(`lib/${triplet}/${name}`, readLibrary(glibc, triplet, name))),
    executable(loader.slice(1), readLibrary(glibc, triplet, loaderName)),
    text(certificates.slice(1), readCertificates(packages.certificates)),
    text(
      "etc/passwd",
      `root:x:0:0:root:/root:/sbin/nologin\nbough:x:${userId}:${userId}:bough:${home}:/sbin/nologin\n`,
    ),
    text("etc/group", `root:x:0:\nbough:x:${userId}:\n`),
    text("etc/nsswitch.conf", "hosts: files dns\n"),
    ...Object.values(packages).flatMap(documents),
    // Another user (docker run --user) keeps its state there, too.
    { type: "directory", path: home.slice(1), mode: 0o1777, uid: userId, gid: userId },
    { type: "directory", path: workingDirectory.slice(1), mode: 0o755, uid: userId, gid: userId },
    { type: "directory", path: "tmp", mode: 0o1777 },
  ];
  return withParents(entries);
}

/** Adds all parent directories of the entries: a tar archive without them leaves their modes open. */
export function withParents(entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  const named = new Set(entries.map(({ path }) => path));
  const parents = new Set(
    entries.flatMap(({ path }) => {
      const names = path.split("/").slice(0, -1);
      return names.map((_, index) => names.slice(0, index + 1).join("/"));
    }),
  );
  const missing = [...parents].filter((path) => !named.has(path));
  return [...missing.map((path): ArchiveEntry => ({ type: "directory", path, mode: 0o755 })), ...entries];
}

function executable(path: string, content: Uint8Array): ArchiveEntry {
  return { type: "file", path, mode: 0o755, content };
}

function text(path: string, content: string): ArchiveEntry {
  return { type: "file", path, mode: 0o644, content };
}

/** Reads a library, in Debian 13 from /usr/lib. */
function readLibrary(glibc: UnpackedPackage, triplet: string, name: string): Uint8Array {
  const places = ["lib", "usr/lib"].map((directory) => join(glibc.directory, directory, triplet, name));
  const found = places.find(existsSync);
  if (found === undefined) throw new Error(`${glibc.name} ${glibc.version} has no ${name}`);
  return readFileSync(found);
}

/** Returns the file that update-ca-certificates writes when the package is installed. */
export function readCertificates({ directory }: UnpackedPackage): string {
  const place = join(directory, "usr/share/ca-certificates/mozilla");
  const names = readdirSync(place).filter((name) => name.endsWith(".crt"));
  return names
    .sort()
    .map((name) => readFileSync(join(place, name), "utf8"))
    .join("");
}

/** Returns the package's licence, and its record in the place where scanners look in images without a package manager. */
export function documents({ name, control, directory }: UnpackedPackage): ArchiveEntry[] {
  const copyright = `usr/share/doc/${name}/copyright`;
  const file = join(directory, copyright);
  return [
    // Some packages link to the documents of another one, on which they depend.
    ...(existsSync(file) ? [text(copyright, readFileSync(file, "utf8"))] : []),
    text(`var/lib/dpkg/status.d/${name}`, control),
  ];
}
