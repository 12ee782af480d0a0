import type { Subprocess } from "bun";
import type { Ended } from "./bough.ts";

/** Waits for the end of a program, and reads its output meanwhile. */
export async function endOf(child: Subprocess<Bun.SpawnOptions.Writable, "pipe", "pipe">): Promise<Ended> {
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exitCode: await child.exited, stdout, stderr };
}
