import { type Dirent, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "./archive-entry.ts";
import { documents, home, readCertificates, userId, withParents, workingDirectory } from "./base-files.ts";
import type { UnpackedPackage } from "./debian-packages.ts";

/** What the engine starts, and what jobs of a pipeline expect in an image: a shell with the usual programs. */
export const enginePackages = [
  ...["crun", "runc", "skopeo", "slirp4netns", "uidmap"],
  ...["util-linux", "mount", "coreutils", "tar", "dash"],
  ...["git", "ca-certificates", "gzip", "sed", "grep"],
];

/** Packages that these need only to be installed, for scripts, or for parts that are left out. */
export const unneeded: ReadonlySet<string> = new Set([
  ...[
    "adduser",
    "debconf",
    "debianutils",
    "dpkg",
    "init-system-helpers",
    "lsb-base",
    "passwd",
    "sysvinit-utils",
  ],
  ...[
    "git-man",
    "liberror-perl",
    "perl",
    "openssl",
    "util-linux-extra",
    "libpam-modules",
    "libsasl2-modules-db",
    "readline-common",
  ],
  ...["container-network-stack", "containernetworking-plugins", "dmsetup", "gnupg", "iptables", "nftables"],
]);

/** Files of these packages that nobody needs in a container. The first group makes up half of the image. */
const leftOut = [
  /^usr\/(include|share\/(bash-completion|bug|doc|doc-base|gitweb|glib-2\.0|info|lintian|locale|man|menu|perl5|zsh))\//,
  /^usr\/lib\/[^/]*\/(gconv|glib-2\.0|lib(gio|gmodule|gobject|gthread)-2\.0|libmvec|[^/]*\.a$)/,
  /^usr\/lib\/git-core\/(git-(shell|daemon|http-backend|http-fetch|http-push|imap-send|instaweb|p4)|scalar|mergetools)/,
  /^usr\/(bin\/(git-shell|scalar)|share\/git-core\/contrib)/,
  /^(etc\/(bash_completion\.d|pam\.d|default|init\.d|cron[^/]*)|usr\/lib\/(systemd|udev|tmpfiles\.d|mime))\//,
  /^usr\/share\/ca-certificates\//,
];

/** Capabilities of programs by their numbers in linux/capability.h. In a container, the setuid bit gives them too few. */
const capabilities: Readonly<Record<string, number>> = { "usr/bin/newgidmap": 6, "usr/bin/newuidmap": 7 };

/** Directories that are links into /usr on today's Debian, whose packages may still use the old names. */
const merged = ["bin", "lib", "lib32", "lib64", "libx32", "sbin"];

/** Returns the root file system of a container that builds, below the executable: Debian's packages, users, and directories. */
export function engineFiles(packages: readonly UnpackedPackage[]): ArchiveEntry[] {
  const entries = new Map<string, ArchiveEntry>();
  const add = (entry: ArchiveEntry) => entries.set(entry.path, entry);
  for (const { directory } of packages) for (const entry of filesOf(directory)) add(entry);
  const links = merged.filter((name) => [...entries.keys()].some((path) => path.startsWith(`usr/${name}/`)));
  for (const name of links) add({ type: "symlink", path: name, target: `usr/${name}` });
  // Debian has it twice.
  add({ type: "symlink", path: "usr/lib/git-core/git", target: "../../bin/git" });
  add({ type: "symlink", path: "usr/bin/sh", target: "dash" });
  const text = (path: string, content: string) => add({ type: "file", path, mode: 0o644, content });
  const authorities = packages.find(({ name }) => name === "ca-certificates");
  if (authorities !== undefined) text("etc/ssl/certs/ca-certificates.crt", readCertificates(authorities));
  text("etc/nsswitch.conf", "hosts: files dns\n");
  text(
    "etc/passwd",
    `root:x:0:0:root:/root:/bin/sh\nbough:x:${userId}:${userId}:bough:${home}:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
  );
  text("etc/group", `root:x:0:\ntty:x:5:\nbough:x:${userId}:\nnogroup:x:65534:\n`);
  // A container with users of its own has 65536 of them, which its root passes on to a RUN.
  for (const file of ["etc/subuid", "etc/subgid"]) text(file, "root:1:65535\nbough:100000:65536\n");
  const directory = (path: string, mode: number, uid = 0) =>
    add({ type: "directory", path, mode, uid, gid: uid });
  // Another user (docker run --user) keeps its state there, too.
  directory(home.slice(1), 0o1777, userId);
  directory(workingDirectory.slice(1), 0o755, userId);
  for (const path of ["tmp", "var/tmp"]) directory(path, 0o1777);
  for (const path of ["dev", "proc", "run", "sys"]) directory(path, 0o755);
  directory("root", 0o700);
  return withParents([...entries.values(), ...packages.flatMap(documents)]);
}

function filesOf(directory: string): ArchiveEntry[] {
  const listed = readdirSync(directory, { withFileTypes: true, recursive: true });
  return listed.flatMap((entry) => {
    const file = join(entry.parentPath, entry.name);
    const path = placeOf(file.slice(directory.length + 1));
    return leftOut.some((pattern) => pattern.test(path)) ? [] : readEntry(entry, file, path);
  });
}

function placeOf(path: string): string {
  return merged.some((name) => path.startsWith(`${name}/`)) ? `usr/${path}` : path;
}

function readEntry(entry: Dirent, file: string, path: string): ArchiveEntry[] {
  if (entry.isSymbolicLink()) return [{ type: "symlink", path, target: readlinkSync(file) }];
  if (!entry.isFile()) return [];
  const capability = capabilities[path];
  const mode = lstatSync(file).mode & 0o777;
  const content = readFileSync(file);
  if (capability === undefined) return [{ type: "file", path, mode, content }];
  return [{ type: "file", path, mode, content, attributes: [fileCapability(capability)] }];
}

/** Returns the attribute by which a program has a capability: version 2 of `struct vfs_cap_data`, effective. */
function fileCapability(number: number): { name: string; value: Uint8Array } {
  const value = Buffer.alloc(20);
  value.writeUInt32LE(0x02000001, 0);
  value.writeUInt32LE(1 << number, 4);
  return { name: "security.capability", value };
}
