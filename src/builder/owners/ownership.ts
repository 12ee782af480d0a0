import { accountRows, idOf } from "../../account-rows.ts";
import { BoughError } from "../../errors.ts";
import { numericUser } from "../commands/command.ts";
import type { BuildJob } from "../job.ts";
import { isEmpty, type StageState } from "../state/state.ts";
import {
  type Accounts,
  findAccountRow,
  readAccounts,
  UnknownAccountError,
  UnreadableAccountsError,
} from "./accounts.ts";

export interface Owner {
  uid: number;
  gid: number;
  /** Names as chown(1) takes them, in place of the numbers, which are 0: the image's own tables have to resolve them. */
  names?: string | undefined;
}

export const root: Owner = { uid: 0, gid: 0 };

/** The user and group with number 0 in every image, so it is never looked up. */
const rootName = "root";

export function isRoot({ uid, gid, names }: Owner): boolean {
  return uid === 0 && gid === 0 && names === undefined;
}

/**
 * Resolves a USER, `user[:group]`, by number or name. Names are looked up in the stage's own passwd and group. A number alone is
 * both uid and gid; a name alone implies its primary group.
 */
async function resolveOwner(chown: string, accounts: Accounts, build: BuildJob): Promise<Owner> {
  const { user, group = "" } = splitOwner(chown);
  const person = await findUser(user, accounts, build);
  return { uid: person.uid, gid: group === "" ? person.gid : await findGroup(group, accounts, build) };
}

/**
 * Resolves a `--chown` as `resolveOwner` does a USER; an empty group (`user:`) is root's, as in BuildKit. With `--docker`, a name
 * that the image doesn't know gets only a warning: BuildKit gives the files to root, or to the user's own group. As in BuildKit, it
 * is an error in an image without any file. Names stay names if the service can't say what they mean.
 */
export async function resolveFileOwner(
  chown: string,
  line: number,
  stage: StageState,
  build: BuildJob,
): Promise<Owner> {
  return findFileOwner(chown, line, stage, build).catch((error: unknown) => {
    if (error instanceof UnreadableAccountsError) return { ...root, names: namesOf(chown) };
    throw error;
  });
}

/** Returns an owner in the form that chown(1) takes. */
function namesOf(chown: string): string {
  const { user, group } = splitOwner(chown);
  // An empty group is the user's own for chown(1).
  return `${user || "0"}:${group === undefined ? "" : group || "0"}`;
}

/** Resolves a `--chown` to numbers. Throws if they can't be looked up. */
export async function findFileOwner(
  chown: string,
  line: number,
  stage: StageState,
  build: BuildJob,
): Promise<Owner> {
  const accounts = { ...stage, mayProbe: build.asked.dialect.looksUpUsers };
  const warnAndUse =
    (instead: string, id: number) =>
    (error: unknown): number => {
      const isLenient = build.asked.dialect.looksUpUsers && !isEmpty(stage);
      if (!isLenient || !(error instanceof UnknownAccountError)) throw error;
      const message = `${error.message}, so the files get ${instead}, as in Docker`;
      build.emit({ type: "warning", message, line });
      return id;
    };
  const { user, group } = splitOwner(chown);
  const person = await findUser(user, accounts, build).catch((error: unknown) => {
    const id = warnAndUse("root as their owner", 0)(error);
    return { uid: id, gid: id };
  });
  if (group === undefined) return person;
  const gid = await findGroup(group, accounts, build).catch(
    warnAndUse(`the group ${person.gid}`, person.gid),
  );
  return { uid: person.uid, gid };
}

/** Returns the numbers that are known without the image; `undefined` for names. */
export function numericOwner(chown: string): { uid: number | undefined; gid: number | undefined } {
  const { user, group } = splitOwner(chown);
  const uid = user === "" ? 0 : numberOf(user);
  return { uid, gid: group === undefined ? uid : numberOf(group || "0") };
}

/** Splits `user:group`. Either may be empty, which means root. Without a colon the group is `undefined`. */
function splitOwner(chown: string): { user: string; group: string | undefined } {
  const end = chown.indexOf(":");
  return end < 0
    ? { user: chown, group: undefined }
    : { user: chown.slice(0, end), group: chown.slice(end + 1) };
}

function numberOf(text: string): number | undefined {
  if (!/^\d+$/.test(text)) return undefined;
  const id = idOf(text);
  if (id !== undefined) return id;
  throw new BoughError(`${text} is out of range for a uid or gid`, {
    kind: "usage",
    hint: "The range is 0 to 2147483647.",
  });
}

/**
 * Returns USER in a form that a request can carry. `name:group`, which `su` can't express, becomes numbers, or the name alone if
 * they can't be read. Anything else stays unchanged. With `--docker` a name becomes its number, whose groups the service finds in
 * the image.
 */
export async function resolveUser(
  stage: StageState,
  line: number,
  build: BuildJob,
): Promise<string | undefined> {
  const user = stage.config.User;
  if (user === undefined || numericUser(user) !== undefined) return user;
  if (!build.asked.dialect.looksUpUsers && !user.includes(":")) return user;
  try {
    const { uid, gid } = await resolveOwner(user, { ...stage, mayProbe: true }, build);
    return user.includes(":") ? `${uid}:${gid}` : String(uid);
  } catch (error) {
    const { user: name } = splitOwner(user);
    if (!(error instanceof UnreadableAccountsError) || numberOf(name) !== undefined) throw error;
    const message = user.includes(":")
      ? `${error.message}: the command runs with the groups of ${name}`
      : undefined;
    if (message !== undefined) build.emit({ type: "warning", message, line });
    return name;
  }
}

async function findUser(user: string, accounts: Accounts, build: BuildJob): Promise<Owner> {
  const number = user === "" || user === rootName ? 0 : numberOf(user);
  if (number !== undefined) return { uid: number, gid: number };
  const fields = await findAccountRow("/etc/passwd", user, accounts, build);
  const gid = idOf(fields[3]);
  if (gid !== undefined) return { uid: idOf(fields[2]) ?? 0, gid };
  throw new BoughError(
    `the user ${user} has no group in the image: its line in /etc/passwd has no valid group number`,
    {
      hint: "Write numbers, such as 1000:1000.",
    },
  );
}

async function findGroup(group: string, accounts: Accounts, build: BuildJob): Promise<number> {
  if (group === "" || group === rootName) return 0;
  return numberOf(group) ?? idOf((await findAccountRow("/etc/group", group, accounts, build))[2]) ?? 0;
}

/** Returns the home directory of a USER in the stage's passwd; `/` if it has none, `undefined` if passwd can't be read. */
export async function homeOf(user: string, stage: StageState, build: BuildJob): Promise<string | undefined> {
  const { user: name } = splitOwner(user);
  const passwd = await readAccounts("/etc/passwd", { ...stage, mayProbe: true }, build);
  if (passwd === "unsupported") return undefined;
  const field = numberOf(name) === undefined ? 0 : 2;
  return accountRows(passwd ?? "").find((fields) => fields[field] === name)?.[5] || "/";
}
