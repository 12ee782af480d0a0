/** Replaces this process by another program, which inherits the descriptors that this process has inherited. */
import { ptr } from "bun:ffi";
import { readdirSync, readlinkSync } from "node:fs";
import { libc } from "./libc.ts";

/**
 * Returns the descriptors above standard error that this process was started with, such as that of a shell's `<(...)`. Must be called
 * before anything is opened, since it returns that, too.
 */
export function inheritedDescriptors(): number[] {
  return readdirSync("/proc/self/fd").flatMap((name) => {
    const descriptor = Number(name);
    return descriptor > 2 && isInherited(descriptor) ? [descriptor] : [];
  });
}

/** Bun itself has opened only anonymous inodes, such as its event loop's. */
function isInherited(descriptor: number): boolean {
  try {
    return !readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("anon_inode:");
  } catch {
    // The descriptor with which the directory was listed is closed by now.
    return false;
  }
}

/** `F_SETFD` of fcntl(2). */
const setDescriptorFlags = 2;

/** Does what execve(2) does, but leaves `descriptors` open: Bun's own function closes all but the standard streams. */
export function replaceProcess(
  [program = "", ...words]: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  descriptors: readonly number[],
): never {
  const path = Bun.which(program) ?? program;
  const command = [path, ...words];
  if (descriptors.length > 0) executeWith(path, command, environment, descriptors);
  if (process.execve === undefined) throw new Error("this system can't replace a process");
  return process.execve(path, command, definedOf(environment));
}

/** Returns only if the program can't be started. */
function executeWith(
  path: string,
  command: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  descriptors: readonly number[],
): void {
  const { fcntl, execve } = libc();
  const settings = Object.entries(definedOf(environment)).map(([name, value]) => `${name}=${value}`);
  const [words, variables] = [createStringArray(command), createStringArray(settings)];
  // Bun has set close-on-exec on all inherited descriptors.
  for (const descriptor of descriptors) fcntl(descriptor, setDescriptorFlags, 0);
  execve(textOf(path), words.pointers, variables.pointers);
}

function definedOf(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}

/** An array of C strings, ended by a null pointer. `texts` keeps them from being collected. */
function createStringArray(words: readonly string[]) {
  const texts = words.map(textOf);
  return { texts, pointers: new BigUint64Array([...texts.map((text) => BigInt(ptr(text))), 0n]) };
}

function textOf(word: string): Buffer {
  return Buffer.from(`${word}\0`);
}
