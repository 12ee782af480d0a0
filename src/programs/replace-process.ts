/** Replaces this process by another program, which gets all descriptors that this one was given. */

import { ptr } from "bun:ffi";
import { readdirSync, readlinkSync } from "node:fs";
import { libc } from "./libc.ts";

/**
 * Returns the descriptors behind standard error that this process was started with, such as that of a shell's `<(...)`. To be called
 * before anything is opened: nothing tells what was opened since.
 */
export function givenDescriptors(): number[] {
  return readdirSync("/proc/self/fd").flatMap((name) => {
    const descriptor = Number(name);
    return descriptor > 2 && isGiven(descriptor) ? [descriptor] : [];
  });
}

/** Bun itself has opened only what has no name, such as its event loop. */
function isGiven(descriptor: number): boolean {
  try {
    return !readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("anon_inode:");
  } catch {
    // That of the list itself is closed by now.
    return false;
  }
}

const setFlags = 2;

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
  // Bun has set close-on-exec on all that it was given.
  for (const descriptor of descriptors) fcntl(descriptor, setFlags, 0);
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
