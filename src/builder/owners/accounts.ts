/** The user tables of a stage: `/etc/passwd` and `/etc/group`. */
import { closeSync, readFileSync } from "node:fs";
import { accountRows, idOf } from "../../account-rows.ts";
import { readError } from "../../context/file-system/file-error.ts";
import { BoughError } from "../../errors.ts";
import { openWithoutLinks } from "../../open-without-links.ts";
import type { BuildJob } from "../job.ts";
import type { StageState } from "../state/state.ts";

/** The files `/etc/passwd` and `/etc/group` of a stage, which map names to numbers. Staged ones override the image's. */
export interface Accounts extends Pick<StageState, "layer" | "staged"> {
  /** True if bough may run a command in the image to read them, on a service that returns no files of images. */
  mayProbe?: boolean;
}

/** Thrown for a name that the tables don't have. */
export class UnknownAccountError extends BoughError {
  override readonly name = "UnknownAccountError";
}

/** Thrown if the tables can't be read. */
export class UnreadableAccountsError extends BoughError {
  override readonly name = "UnreadableAccountsError";
}

/** Returns the fields of the row of a user or group. */
export async function findAccountRow(
  path: AccountFile,
  name: string,
  accounts: Accounts,
  build: BuildJob,
): Promise<string[]> {
  const what = path === "/etc/passwd" ? "user" : "group";
  const content = await readAccounts(path, accounts, build);
  if (content === "unsupported") {
    const reason = accounts.staged.has(path)
      ? `the staged ${path} can't be read before a RUN`
      : `neither the service nor a command in the image can read ${path}`;
    throw new UnreadableAccountsError(`${reason}, so the number of the ${what} ${name} is unknown`, {
      hint: "Write it as a number, such as 1000:1000.",
    });
  }
  const row = accountRows(content ?? "").find(
    (fields) => fields[0] === name && idOf(fields[2]) !== undefined,
  );
  if (row !== undefined) return row;
  const known = content === undefined ? `it has no ${path}` : `its ${path} has no such ${what}`;
  const advice = content === undefined ? `Copy ${path} to the image` : `Create the ${what} in a RUN`;
  throw new UnknownAccountError(`no ${what} ${name} in the image: ${known}`, {
    hint: `${advice} before this line, or write a number.`,
  });
}

/** Returns a table's text; `undefined` if there is no such file. */
export async function readAccounts(
  path: AccountFile,
  { layer, staged, mayProbe = false }: Accounts,
  build: BuildJob,
): Promise<string | undefined | "unsupported"> {
  const entry = staged.get(path);
  if (entry === undefined) return readImageAccounts(path, { layer, mayProbe }, build);
  if (entry.type === "directory") return undefined;
  if (entry.type !== "file") return "unsupported";
  switch (entry.content.kind) {
    case "text":
      return entry.content.text;
    case "local":
      return readLocal(entry.content.absolutePath);
    case "image":
      return build.services.inspection.readTextFile(entry.content.image, entry.content.path);
    case "url":
    case "archive":
    case "repository":
      return "unsupported";
  }
}

/** Reads a file of the image. On a service without file calls, one operation for each image prints both tables. */
async function readImageAccounts(
  path: AccountFile,
  { layer, mayProbe }: Pick<Accounts, "layer" | "mayProbe">,
  build: BuildJob,
): Promise<string | undefined | "unsupported"> {
  const content = await build.services.inspection.readTextFile(layer.image, path);
  if (content !== "unsupported") return content;
  const { imageMetadata } = build.services.store;
  const key = "accounts";
  const known =
    imageMetadata.get(layer.image, key) ?? (mayProbe ? await probeAccounts({ layer }, build) : undefined);
  if (known === undefined) return "unsupported";
  imageMetadata.set(layer.image, key, known);
  return known
    .split("\n")
    .filter((line) => line.split(":").length === fieldCounts[path])
    .join("\n");
}

/** The number of fields, which distinguishes the lines of the two files. */
const fieldCounts = { "/etc/passwd": 7, "/etc/group": 4 };
type AccountFile = keyof typeof fieldCounts;

async function probeAccounts(
  accounts: Pick<Accounts, "layer">,
  build: BuildJob,
): Promise<string | undefined> {
  // Loaded on demand: few builds need a probe.
  const { probeImage, exitCodeOf } = await import("../operations/probe-image.ts");
  const files = Object.keys(fieldCounts);
  const outcome = await probeImage(
    { command: "cat", args: files, title: "asks for the image's users" },
    accounts,
    build,
  );
  // 1: one of the files is missing, but the other has been printed. Some services return no output.
  const isAnswered = [0, 1].includes(exitCodeOf(outcome) ?? -1) && outcome.stdout.text !== "";
  return isAnswered ? outcome.stdout.text.slice(0, maxTables) : undefined;
}

/** The maximum number of characters of both tables: a hostile image may have endless ones. */
const maxTables = 4 * 1024 * 1024;

function readLocal(path: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openWithoutLinks(path);
    return readFileSync(descriptor, "utf8");
  } catch (error) {
    throw readError("read", path, error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
