/** Runs a script. An error is one line on standard error and exit code 1; Bun alone would print an excerpt of the source. */
export async function runScript(work: () => void | Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
