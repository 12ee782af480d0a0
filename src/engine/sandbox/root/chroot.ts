import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { once } from "../../../once.ts";
import { visitNamespace } from "./mount-for-process.ts";

/**
 * Says whether bough itself runs in a chroot: its root is not that of its mount namespace. A runtime moves the root of a command
 * below bough's root only, so the machine's own root stays above it, and chroot(2) is the way there.
 */
export const chrootState = once(() => ({ isInChroot: isInChroot() }));

function isInChroot(): boolean {
  const open = () => openSync("/", constants.O_RDONLY | constants.O_DIRECTORY);
  const opened = [open()];
  try {
    visitNamespace("self", () => opened.push(open()));
    const [own, ofNamespace = own] = opened.map(identify);
    return own !== ofNamespace;
  } catch {
    // bough may not enter its own namespace, or there is no such library.
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** Identifies a directory and the mount by which it is reached. */
function identify(descriptor: number): string {
  const { dev, ino } = fstatSync(descriptor);
  const [mount] = /^mnt_id:.*$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
  return `${dev} ${ino} ${mount}`;
}
