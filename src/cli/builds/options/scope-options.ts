import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { ScopeChoice } from "../../../builder/scopes/open-scopes.ts";
import { parseScopeName } from "../../../builder/scopes/scope-name.ts";
import type { KeyFile, ScopeKeys } from "../../../builder/scopes/signature.ts";
import { fileError } from "../../../context/file-system/file-error.ts";
import { usageError } from "../../../errors.ts";
import type { Invocation } from "../../command-line/command.ts";

/** The scopes that a build shares its cache in, and their keys. */
export interface ScopeOptions extends ScopeChoice {
  keys: ScopeKeys;
  /** The reason for the choice of `--cache auto`; `undefined` if the scopes are named. */
  reason: string | undefined;
}

type Given = Pick<Invocation, "values" | "runtime">;

/** Reads the options. `context` is the absolute path of a local context. Rejects with a BoughError of kind `usage`. */
export async function readScopeOptions(given: Given, context: string | undefined): Promise<ScopeOptions> {
  const { values } = given;
  const named = namedScopes(given);
  const isAutomatic = values.text("cache") !== undefined;
  if (isAutomatic && values.text("cache") !== "auto")
    throw usageError(
      `--cache takes auto, not ${JSON.stringify(values.text("cache"))}`,
      "Scopes are named with --cache-from and --cache-to.",
    );
  const isNamed = values.text("cache-to") !== undefined || values.list("cache-from").length > 0;
  if (isAutomatic && isNamed)
    throw usageError(
      "--cache auto chooses the scopes itself: it cannot be used with --cache-from or --cache-to",
      "Leave one of them out.",
    );
  const choice = isAutomatic ? await chooseScopes(given, context) : { ...named, reason: undefined };
  const keys = await readKeys(given);
  if (keys.sign !== undefined && choice.to === undefined && !isAutomatic)
    throw usageError("--cache-sign needs --cache-to", "Name a scope with --cache-to NAME.");
  return { ...choice, keys };
}

async function chooseScopes({ runtime }: Given, context: string | undefined) {
  const { chooseAutomatically } = await import("./automatic-scopes.ts");
  return chooseAutomatically(runtime.environment, context);
}

/** Returns the scopes that options or variables name. An option with an empty name overrides its variable with no scope. */
function namedScopes({ values, runtime: { environment } }: Given): ScopeChoice {
  const { BOUGH_CACHE_TO, BOUGH_CACHE_FROM = "" } = environment;
  const options = values.list("cache-from");
  const [from, fromOption] =
    options.length > 0 ? [options, "--cache-from"] : [[BOUGH_CACHE_FROM], "BOUGH_CACHE_FROM"];
  const to = values.text("cache-to");
  const [name = "", toOption] = to === undefined ? [BOUGH_CACHE_TO, "BOUGH_CACHE_TO"] : [to, "--cache-to"];
  const names = from.flatMap((text) => text.split(",")).filter((text) => text !== "");
  return {
    from: [...new Set(names.map((text) => parseScopeName(text, fromOption)))],
    to: name === "" ? undefined : parseScopeName(name, toOption),
  };
}

/** Reads the keys. Loads the code that signs and verifies only if one is given. */
async function readKeys({ values, runtime: { workingDirectory } }: Given): Promise<ScopeKeys> {
  const [signing, verifying] = [values.text("cache-sign"), values.list("cache-verify")];
  if (signing === undefined && verifying.length === 0) return { sign: undefined, verify: undefined };
  const read = (option: string, path: string): KeyFile => {
    try {
      return { path, content: readFileSync(resolve(workingDirectory, path), "utf8") };
    } catch (error) {
      throw usageError(
        `${option}: ${fileError("read", path, error).message}`,
        "It takes a file with a key in PEM format.",
      );
    }
  };
  const { readScopeKeys } = await import("../../../builder/scopes/signature.ts");
  return readScopeKeys(
    signing === undefined ? undefined : read("--cache-sign", signing),
    verifying.map((path) => read("--cache-verify", path)),
  );
}
