import type { ImageSignature } from "../../builder/result.ts";
import type { WrittenImage } from "../../image/image-writer.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { openReferrers } from "../../registry/open-blob-store.ts";
import { Secret } from "../../secret.ts";
import { findTokenSource, readToken } from "../../signatures/identity-token.ts";
import { createSigner, type ImageSigner, type SigningOptions } from "../../signatures/sign.ts";
import { readSigningKey } from "../../signatures/signing-key.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";
import type { SignRequest } from "./sign-option.ts";
import { readSmall } from "./small-file.ts";

/** Signs the image that a repository, `HOST/NAME`, has, logs it, and returns what results have of the signature. */
export type SignImage = (
  image: WrittenImage["descriptor"],
  repository: string,
  access: { credentials: RegistryCredentials | undefined; isInsecure?: boolean },
) => Promise<ImageSignature>;

/** The signers that a command has opened, by what `--sign` asks for: several builds read and decrypt its key once. */
export type Signers = Map<string, Promise<ImageSigner>>;

/** Opens what `--sign` names. Throws a BoughError of kind `usage` for what can't be used. */
export async function openSigning(
  request: SignRequest,
  runtime: Runtime,
  log: Pick<Log, "info">,
  signers: Signers,
): Promise<SignImage> {
  const signer = await signers.getOrInsertComputed(JSON.stringify(request), () =>
    openSigner(request, runtime),
  );
  const { fetch, clock, environment, signal } = runtime;
  return async (image, repository, access) => {
    const referrers = openReferrers(`docker://${repository}`, { fetch, clock, environment, ...access });
    const { identity, logIndex, ...stored } = await signer.sign(image, repository, referrers, signal);
    const entered = logIndex === undefined ? "" : `, entry ${logIndex} of the log`;
    log.info(`signed ${repository}@${image.digest} by ${identity ?? "the key"}${entered}`);
    return { identity: identity ?? null, logIndex: logIndex ?? null, ...stored };
  };
}

async function openSigner(request: SignRequest, runtime: Runtime): Promise<ImageSigner> {
  const { fetch, clock, environment } = runtime;
  const { log, timestampAuthority, hasCosignTag } = request;
  const by = await openIdentity(request, runtime);
  return createSigner({ by, log, timestampAuthority, hasCosignTag }, { fetch, clock, environment });
}

async function openIdentity({ by }: SignRequest, runtime: Runtime): Promise<SigningOptions["by"]> {
  switch (by.kind) {
    case "token":
      return { token: findTokenSource(runtime.environment, "--sign"), authority: by.authority };
    case "token file": {
      const token = Secret.of((await readSmall(by.path, `--sign token=${by.path}`, runtime)).trim());
      readToken(token);
      return { token: { kind: "given", token }, authority: by.authority };
    }
    case "key": {
      const option = `--sign key=${by.place}`;
      const { COSIGN_PASSWORD } = runtime.environment;
      return {
        key: await readSigningKey(await readSmall(by.place, option, runtime), COSIGN_PASSWORD, option),
      };
    }
  }
}
