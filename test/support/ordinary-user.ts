/**
 * Runs programs as a user without privileges, with a separate home and sub-ids. The machine's user database does not
 * change: other files are mounted over it in a mount namespace of these programs.
 */
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { linkBough } from "./compiled.ts";
import { removeHome } from "./homes.ts";

const name = "bough-tester";
const id = 61_234;
const firstSubordinateId = 700_000;

export interface OrdinaryUser {
  /** Writable for the user, and removed at the end. */
  readonly home: string;
  /** The words before a command line that run it as this user. */
  readonly prefix: readonly string[];
  /** Where this checkout and Bun are for the user, who may not be able to read their own places. */
  readonly checkout: string;
  readonly bun: string;
  /** Copies a file or directory into the home, and gives it to the user. Returns its path. */
  give(path: string, name: string): string;
  /** Puts the compiled program into the home, as `bough`. It still belongs to root. */
  giveBough(): string;
  remove(): void;
}

interface OrdinaryUserOptions {
  /** True (the default) if the user has a range of sub-ids. */
  subordinateIds?: boolean;
  /** What forbids user namespaces: in a chroot clone(2) fails with EPERM, beyond the limit of a sysctl with ENOSPC. */
  forbidsNamespaces?: "chroot" | "sysctl";
  /** The directory in which the home is made; by default the temporary one. */
  parent?: string;
  /** True if commands stay in the mount namespace in which they are started, under their own mounts of the user database. */
  staysInNamespace?: boolean;
}

/** Makes an ordinary user. Needs root. */
export function makeOrdinaryUser(options: OrdinaryUserOptions = {}): OrdinaryUser {
  const directory = mkdtempSync(join(options.parent ?? tmpdir(), "bough-user-"));
  chmodSync(directory, 0o755);
  const home = join(directory, "home");
  mkdirSync(home);
  chownSync(home, id, id);
  const range = options.subordinateIds === false ? "" : `${name}:${firstSubordinateId}:65536\n`;
  // newuidmap(1) gives ids in a user namespace even to root only as these tables allow.
  const rootRange = options.forbidsNamespaces === "sysctl" ? "root:0:100000\n" : "";
  const overlays = {
    "/etc/passwd": `${readFileSync("/etc/passwd", "utf8")}${name}:x:${id}:${id}::${home}:/bin/sh\n`,
    "/etc/group": `${readFileSync("/etc/group", "utf8")}${name}:x:${id}:\n`,
    "/etc/subuid": `${rootRange}${range}`,
    "/etc/subgid": `${rootRange}${range}`,
  };
  const mounts = Object.entries(overlays).map(([path, content]) => {
    const replacement = join(directory, path.slice("/etc/".length));
    writeFileSync(replacement, content);
    return `mount --bind '${replacement}' ${path}`;
  });
  // Debian's udev gives it this mode; in containers and bare virtual machines it may be for root only.
  mounts.push(
    "if [ -e /dev/net/tun ]; then mount -t tmpfs -o mode=755 tmpfs /dev/net; mknod -m 666 /dev/net/tun c 10 200; fi",
  );
  const [checkout, bun] = [join(directory, "checkout"), join(directory, "bun")];
  mkdirSync(checkout);
  writeFileSync(bun, "");
  mounts.push(`mount --bind '${join(import.meta.dir, "../..")}' '${checkout}'`);
  mounts.push(`mount --bind '${process.execPath}' '${bun}'`);
  const become = [
    "setpriv",
    "--reuid",
    `${id}`,
    "--regid",
    `${id}`,
    "--clear-groups",
    "--inh-caps=-all",
    "--",
  ];
  const { forbidsNamespaces, staysInNamespace = forbidsNamespaces !== undefined } = options;
  const kept = staysInNamespace ? undefined : keepNamespace(directory, mounts);
  const prefix =
    kept === undefined
      ? [...inNewNamespace, [...mounts, confine(directory, forbidsNamespaces, become)].join("; "), "sh"]
      : ["nsenter", `--mount=/proc/${kept.pid}/ns/mnt`, `--wdns=${home}`, "--", ...become];
  return {
    home,
    ...{ prefix, checkout, bun },
    give(path, target) {
      const place = join(home, target);
      cpSync(path, place, { recursive: true });
      Bun.spawnSync(["chown", "-R", `${id}:${id}`, place]);
      return place;
    },
    giveBough: () => linkBough(home),
    remove() {
      kept?.kill("SIGKILL");
      removeHome(directory);
    },
  };
}

const inNewNamespace = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"];

/** Starts a process that keeps a namespace with these mounts: to enter it takes a fifth of the time of making one. */
function keepNamespace(directory: string, mounts: readonly string[]): Subprocess<"pipe"> {
  const ready = join(directory, "mounted");
  // It ends with the process of the test, however that ends.
  const script = [...mounts, `: > '${ready}'`, "read -r end"].join("; ");
  const keeper = Bun.spawn([...inNewNamespace, script], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "inherit",
  });
  keeper.unref();
  for (let waited = 0; !existsSync(ready); waited++) {
    if (waited === 30_000) throw new Error("the files of the user database can't be mounted");
    Bun.sleepSync(1);
  }
  return keeper;
}

/** The end of a script that runs its arguments as the user, without user namespaces if they are forbidden. */
function confine(
  directory: string,
  forbidsNamespaces: OrdinaryUserOptions["forbidsNamespaces"],
  words: readonly string[],
): string {
  const become = `${words.join(" ")} "$@"`;
  const home = join(directory, "home");
  if (forbidsNamespaces === "chroot")
    return `mkdir -p '${directory}/root'; mount --rbind / '${directory}/root'; exec chroot '${directory}/root' ${become}`;
  // The limit applies to the namespace in which it is set, not to the machine.
  if (forbidsNamespaces === "sysctl")
    return [
      "exec unshare --user --map-users=0,0,100000 --map-groups=0,0,100000",
      `sh -ec 'echo 0 > /proc/sys/user/max_user_namespaces; cd "${home}"; exec "$@"' sh ${become}`,
    ].join(" ");
  return `cd '${home}'; exec ${become}`;
}
