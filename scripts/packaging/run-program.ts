/** Returns the output of a program. Throws its standard error if it fails. */
export function runProgram(command: readonly string[], options: { cwd?: string } = {}): string {
  const { cwd } = options;
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    ...(cwd === undefined ? {} : { cwd }),
    stdout: "pipe",
    stderr: "pipe",
  });
  if (exitCode === 0) return stdout.toString();
  throw new Error(`${command.slice(0, 3).join(" ")} failed (${exitCode}): ${stderr.toString().trim()}`);
}
