import { isCi } from "../../terminal/color.ts";

/**
 * Shows text in `$PAGER`, or in less where it is installed. Resolves when the reader has left the pager. Resolves with false if
 * nothing was shown, because there is no pager, or it does not start.
 */
export async function showInPager(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const { PAGER, CI, TERM, LESS = "FRX" } = environment;
  const pager = PAGER ?? (Bun.which("less") === null ? "" : "less");
  if (["", "cat"].includes(pager.trim()) || isCi(CI) || TERM === "dumb" || process.platform === "win32")
    return false;
  // While the pager runs, Ctrl-C is for the pager.
  const ignore = (): void => {};
  process.on("SIGINT", ignore);
  try {
    const child = Bun.spawn(["sh", "-c", pager], {
      stdin: new TextEncoder().encode(text),
      stdout: "inherit",
      stderr: "inherit",
      env: { ...environment, LESS },
    });
    // The shell's codes for a program that is missing or can't be executed.
    return ![126, 127].includes(await child.exited);
  } catch {
    return false;
  } finally {
    process.off("SIGINT", ignore);
  }
}
