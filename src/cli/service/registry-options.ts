/** Reads the options of commands that use registries. bough's client of registries and skopeo, which the engine starts, get them as variables. */

import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { usageError } from "../../errors.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { parseMirror } from "../../registry/repository.ts";
import { Secret } from "../../secret.ts";
import { reasonOf } from "../../system-error.ts";
import type { Values } from "../command-line/arguments.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { withVariables } from "../process/environment.ts";
import type { Runtime } from "../process/runtime.ts";

/** Returns the environment with the options of the command line, which replace its variables. */
export function withRegistryOptions(
  values: Values,
  { environment, workingDirectory }: Pick<Runtime, "environment" | "workingDirectory">,
): Runtime["environment"] {
  const given = values.text("authfile");
  const authfile = given === undefined ? undefined : resolve(workingDirectory, given);
  if (authfile !== undefined) requireReadable(authfile, `--authfile ${given}`);
  const verifies = values.text("tls-verify");
  if (verifies !== undefined && verifies !== "true" && verifies !== "false")
    throw usageError(
      `--tls-verify takes true or false, not ${JSON.stringify(verifies)}`,
      "The default is true.",
    );
  const retry = values.text("retry");
  const retries = retry === "0" ? 0 : positiveInteger(retry, "--retry");
  const mirrors = values.list("registry-mirror");
  for (const mirror of mirrors)
    if (parseMirror(mirror) === undefined)
      throw usageError(
        `--registry-mirror takes HOST[:PORT][/PATH], not ${JSON.stringify(mirror)}`,
        "http://HOST is a mirror without TLS.",
      );
  return withVariables(environment, {
    ...(mirrors.length > 0 && { BOUGH_REGISTRY_MIRROR: mirrors.join(" ") }),
    ...(authfile !== undefined && { REGISTRY_AUTH_FILE: authfile }),
    ...(verifies !== undefined && { BOUGH_TLS_VERIFY: verifies }),
    ...(retries !== undefined && { BOUGH_RETRY: String(retries) }),
  });
}

/** Throws if a file that an option names can't be read. As in skopeo, a file that a variable names may be missing. */
function requireReadable(path: string, given: string): void {
  const refuse = (reason: string) => usageError(`${given}: ${reason}`, "`docker login` writes such a file.");
  let isDirectory: boolean;
  try {
    accessSync(path, constants.R_OK);
    isDirectory = statSync(path).isDirectory();
  } catch (error) {
    throw refuse(reasonOf(error));
  }
  if (isDirectory) throw refuse("it is a directory");
}

/** Reads `--creds USER:PASSWORD`. */
export function readCredentials(values: Values): RegistryCredentials | undefined {
  const text = values.text("creds");
  if (text === undefined) return undefined;
  const [, username = "", password = ""] = /^([^:]+):(.+)$/s.exec(text) ?? [];
  if (username !== "") return { username, password: Secret.of(password) };
  throw usageError(
    "--creds takes USER:PASSWORD",
    "`docker login` or `skopeo login` stores credentials, and asks for the password.",
  );
}
