import { readdirSync, readlinkSync } from "node:fs";

/**
 * Files and sockets that this process opened during `action` and still has open, if they are more than those that it closed,
 * after some time for what ends in the background. A started program has sockets for its standard streams: an engine replaces
 * the process that waits for the next command, if there was one.
 */
export async function leftOpen(action: () => Promise<unknown>): Promise<string[]> {
  const before = openNow();
  await action();
  let left = newAmong(openNow(), before);
  for (let tries = 0; tries < 500 && left.length > 0; tries++) {
    await Bun.sleep(2);
    left = newAmong(openNow(), before);
  }
  return left;
}

function newAmong(now: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): string[] {
  const open = new Set(now.values());
  const gone = [...before.values()].filter((path) => !open.has(path));
  const added = [...now].filter(([descriptor, path]) => before.get(descriptor) !== path);
  return added.length > gone.length ? added.map(([, path]) => path) : [];
}

function openNow(): Map<string, string> {
  return new Map(openDescriptors().filter(([, target]) => /^(pipe:|socket:|\/(?!proc|dev))/.test(target)));
}

/** The targets of this process's descriptors. */
export function openTargets(): string[] {
  return openDescriptors().map(([, target]) => target);
}

function openDescriptors(): [descriptor: string, target: string][] {
  return readdirSync("/proc/self/fd").map((descriptor) => [descriptor, targetOf(descriptor)]);
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // This is the descriptor with which the list was read.
    return "";
  }
}
