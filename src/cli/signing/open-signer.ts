import { resolve } from "node:path";
import type { ImageSignature } from "../../builder/result.ts";
import { messageOf, usageError } from "../../errors.ts";
import type { WrittenImage } from "../../image/image-writer.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { openReferrers } from "../../registry/open-blob-store.ts";
import { Secret } from "../../secret.ts";
import { readToken } from "../../signatures/identity-token.ts";
import { createSigner, type SigningOptions } from "../../signatures/sign.ts";
import { readSigningKey } from "../../signatures/signing-key.ts";
import type { Log } from "../../terminal/log.ts";
import type { Invocation } from "../command-line/command.ts";
import type { Runtime } from "../process/runtime.ts";
import { readSignOption, type SignRequest } from "./sign-option.ts";

/** Signs the image that a repository, `HOST/NAME`, has, logs it, and returns what results have of the signature. */
export type SignImage = (
  image: WrittenImage["descriptor"],
  repository: string,
  access: { credentials: RegistryCredentials | undefined; isInsecure?: boolean },
) => Promise<ImageSignature>;

const maxKeyBytes = 64 * 1024;

/**
 * Reads `--sign` with its files. Throws a BoughError of kind `usage` for what can't be used, before anything is built.
 *
 * @param isPushed whether there is an image to sign
 */
export async function readSigner(
  { values, runtime }: Pick<Invocation, "values" | "runtime">,
  isPushed: boolean,
  log: Pick<Log, "info">,
): Promise<SignImage | undefined> {
  const request = readSignOption(values, runtime);
  if (request === undefined) return undefined;
  if (!isPushed) throw usageError("--sign needs an image that is pushed", "Give --push.");
  return openSigner(request, runtime, log);
}

async function openSigner(
  request: SignRequest,
  runtime: Runtime,
  log: Pick<Log, "info">,
): Promise<SignImage> {
  const { fetch, clock, environment, signal } = runtime;
  const { timestampAuthority, hasCosignTag } = request;
  const by = await openIdentity(request, runtime);
  const signer = createSigner(
    { by, log: request.log, timestampAuthority, hasCosignTag },
    { fetch, clock, environment },
  );
  return async (image, repository, access) => {
    const referrers = openReferrers(`docker://${repository}`, { fetch, clock, environment, ...access });
    const { identity, logIndex, ...stored } = await signer.sign(image, repository, referrers, signal);
    const entered = logIndex === undefined ? "" : `, entry ${logIndex} of the log`;
    log.info(`signed ${repository}@${image.digest} by ${identity ?? "the key"}${entered}`);
    return { identity: identity ?? null, logIndex: logIndex ?? null, ...stored };
  };
}

async function openIdentity({ by }: SignRequest, runtime: Runtime): Promise<SigningOptions["by"]> {
  switch (by.kind) {
    case "token":
      return { token: by.source, authority: by.authority };
    case "token file": {
      const token = Secret.of((await readText(by.path, "token", runtime)).trim());
      readToken(token);
      return { token: { kind: "given", token }, authority: by.authority };
    }
    case "key": {
      const option = `--sign key=${by.place}`;
      const { COSIGN_PASSWORD } = runtime.environment;
      return { key: readSigningKey(await readText(by.place, "key", runtime), COSIGN_PASSWORD, option) };
    }
  }
}

/** Reads a file, or what a variable has: `env://NAME`. */
async function readText(
  place: string,
  field: string,
  { environment, isSecretVariable = () => true, inputs, workingDirectory, signal }: Runtime,
): Promise<string> {
  const variable = /^env:\/\/(.+)$/.exec(place)?.[1];
  if (variable !== undefined) {
    const value = isSecretVariable(variable) ? environment[variable] : undefined;
    if (value) return value;
    throw usageError(`--sign ${field}=${place}: the variable ${variable} is not set`);
  }
  try {
    const path = resolve(workingDirectory, place);
    return (await inputs.read(path, { maxBytes: maxKeyBytes, signal })).toString();
  } catch (error) {
    signal.throwIfAborted();
    throw usageError(`--sign ${field}=${place} can't be read: ${messageOf(error)}`);
  }
}
