/**
 * Runs programs as a user without privileges, with a separate home and sub-ids. The machine's user database does not
 * change: other files are mounted over it in a mount namespace of these programs.
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
  /** The words before a command line that run it as this user. */
  readonly prefix: readonly string[];
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
  const become = `setpriv --reuid ${id} --regid ${id} --clear-groups --inh-caps=-all -- "$@"`;
  const confine = {
    none: `cd '${home}'; exec ${become}`,
    chroot: `mkdir -p '${directory}/root'; mount --rbind / '${directory}/root'; exec chroot '${directory}/root' ${become}`,
    // The limit applies to the namespace in which it is set, not to the machine.
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
