import { renderTable } from "../../terminal/table.ts";
import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { shortLayer } from "./working-branch.ts";

/** Prints a session's branch and the image that it is at. */
export function printBranch(
  invocation: Invocation,
  { session, branch, image }: { session: string; branch: string; image: string },
): void {
  printResult(invocation, {
    id: image,
    json: { session, branch, image },
    table: (style) =>
      renderTable(["SESSION", "BRANCH", "IMAGE"], [[session, shortLayer(branch, style), image]], style),
  });
}
