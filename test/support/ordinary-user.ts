/**
 * Runs programs as a user without privileges, with a home and sub-ids of its own. The machine's user database stays
 * as it is: the files that say who that is are laid over it in a mount namespace, for these programs alone.
 */
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linkBough } from "./compiled.ts";
import { removeHome } from "./homes.ts";

const name = "bough-tester";
const id = 61_234;
const firstSubordinateId = 700_000;

export interface OrdinaryUser {
  /** Writable for the user, and removed at the end. */
  readonly home: string;
  /** What stands before a command line to run it as this user. */
  readonly prefix: readonly string[];
  /** Copies a file or directory into the home, and hands it over. */
  give(path: string, name: string): string;
  /** Puts the compiled program into the home, as `bough`; it stays root's. */
  giveBough(): string;
  remove(): void;
}

export interface OrdinaryUserOptions {
  /** Whether the user has a range of them: yes if not said. */
  subordinateIds?: boolean;
  /** By what user namespaces are forbidden: in a chroot clone(2) has EPERM for them, beyond their number ENOSPC. */
  forbidsNamespaces?: "chroot" | "sysctl";
  /** The directory to make the home in: the temporary one if not said. */
  parent?: string;
}

/** Needs root. */
export function makeOrdinaryUser(options: OrdinaryUserOptions = {}): OrdinaryUser {
  const directory = mkdtempSync(join(options.parent ?? tmpdir(), "bough-user-"));
  chmodSync(directory, 0o755);
  const home = join(directory, "home");
  mkdirSync(home);
  chownSync(home, id, id);
  const range = options.subordinateIds === false ? "" : `${name}:${firstSubordinateId}:65536\n`;
  // Even root is given ids in a user namespace by newuidmap(1), which asks the tables.
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
  // Debian's udev makes it so; in containers and bare virtual machines it may be root's alone.
  mounts.push(
    "if [ -e /dev/net/tun ]; then mount -t tmpfs -o mode=755 tmpfs /dev/net; mknod -m 666 /dev/net/tun c 10 200; fi",
  );
  const become = `setpriv --reuid ${id} --regid ${id} --clear-groups --inh-caps=-all -- "$@"`;
  const confine = {
    none: `cd '${home}'; exec ${become}`,
    chroot: `mkdir -p '${directory}/root'; mount --rbind / '${directory}/root'; exec chroot '${directory}/root' ${become}`,
    // The limit is that of the namespace that it is set in: the machine keeps its own.
    sysctl: [
      "exec unshare --user --map-users=0,0,100000 --map-groups=0,0,100000",
      `sh -ec 'echo 0 > /proc/sys/user/max_user_namespaces; cd "${home}"; exec "$@"' sh ${become}`,
    ].join(" "),
  }[options.forbidsNamespaces ?? "none"];
  return {
    home,
    prefix: [
      "unshare",
      "--mount",
      "--propagation",
      "private",
      "sh",
      "-ec",
      [...mounts, confine].join("; "),
      "sh",
    ],
    give(path, target) {
      const place = join(home, target);
      cpSync(path, place, { recursive: true });
      Bun.spawnSync(["chown", "-R", `${id}:${id}`, place]);
      return place;
    },
    giveBough: () => linkBough(home),
    remove: () => removeHome(directory),
  };
}
