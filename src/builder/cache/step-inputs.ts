import { isSecretName } from "../../dockerfile/secret-name.ts";
import { type Secrets, secretsAmong } from "../../dockerfile/secrets.ts";
import { effectiveEnv } from "../interpreter/scope.ts";
import type { StageState } from "../interpreter/state.ts";
import type { Staged, StagedEntry } from "../staging/staged.ts";
import { baseHash } from "./chain-hash.ts";

/** What a layer is made from: all that enters its chain hash, each under a name that a person knows. */
export interface StepInputs {
  /** The parent layer's chain hash; of a base image its UUID. */
  parent: string;
  /** The instruction on one line, as written. */
  title: string;
  /** A salted hash of the command, its variables replaced. */
  command: string;
  args: Variables;
  env: Variables;
  user: string | null;
  workdir: string;
  /** Type, mode, owner and the beginning of the hash, by path in the image, or where it is mounted. */
  files: Readonly<Record<string, string>>;
}

/** By name; `null`: declared without a value. */
export type Variables = Readonly<Record<string, Value | null>>;

/** The text itself, or of a secret a salted hash, which is enough to see that it has changed. */
export type Value = { text: string } | { withheld: string };

/** `salt`: keeps equal secrets of different contexts from looking alike. */
export function inputsOf(
  stage: StageState,
  { title, directive, mounts }: { title: string; directive: readonly string[]; mounts?: { files: Staged } },
  salt: string,
): StepInputs {
  const args = new Map([...stage.args].map(([name, { value }]) => [name, value ?? null]));
  const env = effectiveEnv(stage);
  const { User, WorkingDir } = stage.config;
  const secrets = secretsAmong([...args, ...env]);
  const variables = (values: Iterable<readonly [string, string | null]>): Variables =>
    Object.fromEntries(
      [...values].map(([name, value]) => {
        if (value === null) return [name, null];
        const isSecret = isSecretName(name) || secrets.mask(value) !== value;
        return [name, isSecret ? { withheld: shortHash(salt + value) } : { text: value }];
      }),
    );
  return {
    parent: isBase(stage.layer) ? stage.layer.image : stage.layer.hash,
    title,
    command: shortHash(salt + JSON.stringify(directive)),
    args: variables(args),
    env: variables(env),
    user: User === undefined ? null : secrets.mask(User),
    workdir: secrets.mask(WorkingDir),
    files: { ...describeFiles(stage.staged, secrets), ...describeFiles(mounts?.files ?? new Map(), secrets) },
  };
}

function isBase({ hash, image }: StageState["layer"]): boolean {
  return hash === baseHash(image);
}

function describeFiles(staged: Staged, secrets: Secrets): Record<string, string> {
  return Object.fromEntries(
    [...staged].map(([path, entry]) => [secrets.mask(path), secrets.mask(describeFile(entry))]),
  );
}

/** `file 0644 0:0 3f2a9c0d1e4b` */
function describeFile(entry: StagedEntry): string {
  const owner = `${entry.uid}:${entry.gid}`;
  switch (entry.type) {
    case "file":
      return `file ${octal(entry.mode)} ${owner} ${entry.sha256.slice(0, shownDigits)}`;
    case "directory":
      return `directory ${octal(entry.mode)} ${owner} ${entry.isExplicit ? "as it is here" : ""}`.trimEnd();
    case "symlink":
      return `link ${owner} to ${entry.target}`;
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/** Hexadecimal digits of a hash: enough to tell files apart. */
const shownDigits = 12;

function shortHash(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, shownDigits);
}
