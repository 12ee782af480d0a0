import { createPublicKey } from "node:crypto";
import { join } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { openReferrers } from "../../registry/open-blob-store.ts";
import { type FoundSignature, findSignatures } from "../../signatures/find-signatures.ts";
import { exactly, expression, reasonAgainst, type SignerPolicy } from "../../signatures/signer-policy.ts";
import { signaturePredicate } from "../../signatures/statement.ts";
import { fetchTrustedRoot, readTrustedRoot } from "../../signatures/trusted-root.ts";
import { createVerifier, UnverifiedError, type VerifyBundle } from "../../signatures/verify-bundle.ts";
import type { Invocation } from "../command-line/command.ts";
import { parseImageName } from "../indexes/image-name.ts";
import { MissingImageError } from "../indexes/platform-index.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { readCredentials } from "../service/registry-options.ts";
import { readSmall, readSmallFile } from "../signing/small-file.ts";

interface CheckedImage {
  name: string;
  digest: string;
  signatures: readonly TrustedSignature[];
}

/** A trusted signature as it is printed. */
interface TrustedSignature {
  identity: string | null;
  issuer: string | null;
  signedAt: string | null;
  logIndex: string | null;
  kind: FoundSignature["kind"];
  /** The digest of the manifest that has it. */
  manifest: string;
}

const maxReasons = 5;
const unread = "more is attached to it than is read";

/** Returns the signatures of an image that are trusted. Throws a BoughError if there is none. */
export async function checkSignatures({
  values,
  runtime,
}: Pick<Invocation, "values" | "runtime">): Promise<CheckedImage> {
  const [given = ""] = values.positionals;
  const { address, repository, reference, full } = parseImageName(given);
  const policy = readPolicy(values);
  const key = await readKey(values.text("key"), runtime);
  const predicateType = values.text("type") ?? signaturePredicate;
  const { fetch, clock, environment, signal } = runtime;
  const rootFile = values.text("trusted-root");
  const file =
    rootFile === undefined ? undefined : await readSmallFile(rootFile, `--trusted-root ${rootFile}`, runtime);
  const root = file && readTrustedRoot(file, rootFile ?? "");

  const credentials = readCredentials(values);
  const dependencies = { fetch, clock, environment, credentials, followsLocation: true };
  const referrers = openReferrers(address, dependencies);
  const manifest = await referrers.store.getManifest(reference, signal);
  if (manifest === undefined) throw new MissingImageError(`docker://${full}`);
  const { digest } = manifest;
  const { signatures: found, isWhole } = await findSignatures(referrers, digest, signal);
  const name = `${repository}@${digest}`;
  if (found.length === 0)
    throw new BoughError(
      `${name} ${isWhole ? "is not signed" : `has no signature that was found, but ${unread}`}`,
      {
        hint: wording`${{ option: "sign" }} of ${{ command: "build" }}, ${{ command: "bake" }} and ${{ command: "push" }} signs what is pushed. Of an image for several platforms, the index is signed.`,
      },
    );
  const verify = createVerifier({
    key,
    root:
      root ??
      (key === undefined ? await fetchTrustedRoot(join(stateDirectory(runtime), "sigstore")) : undefined),
  });
  const checked = found.map((each) => check(each, { digest, predicateType }, { verify, policy }));
  const signatures = checked.flatMap((each) => (typeof each === "string" ? [] : [each]));
  if (signatures.length === 0)
    throw refusalOf(
      name,
      checked.filter((each) => typeof each === "string"),
      isWhole,
    );
  return { name: given, digest, signatures };
}

/** Returns what a signature says, or the reason why it does not count. */
function check(
  found: FoundSignature,
  about: { digest: string; predicateType: string },
  { verify, policy }: { verify: VerifyBundle; policy: SignerPolicy | undefined },
): TrustedSignature | string {
  try {
    const signer = verify(found, about);
    const reason = policy && reasonAgainst(signer, policy);
    if (reason !== undefined) return reason;
    const { identity = null, issuer = null, signedAt = null, logIndex = null } = signer;
    return { identity, issuer, signedAt, logIndex, kind: found.kind, manifest: found.manifest };
  } catch (error) {
    if (error instanceof UnverifiedError) return error.message;
    throw error;
  }
}

function refusalOf(name: string, reasons: readonly string[], isWhole: boolean): BoughError {
  const shown = [...new Set(reasons)].slice(0, maxReasons);
  const [reason = ""] = shown;
  const what =
    reasons.length === 1
      ? `${name} has a signature that does not count: ${reason}`
      : `${name} has ${reasons.length} signatures, none of which counts: ${shown.join("; ")}`;
  return new BoughError(isWhole ? what : `${what}; ${unread}`, {
    hint: "Nothing shows that the image is from whom you expect: don't use it before you know why.",
  });
}

/** Reads whose signatures count; `undefined` for those of a key. */
function readPolicy(values: Invocation["values"]): SignerPolicy | undefined {
  const match = (option: "identity" | "issuer") => {
    const [text, pattern] = [values.text(option), values.text(`${option}-regexp`)];
    if (text !== undefined && pattern !== undefined)
      throw usageError(`--${option} and --${option}-regexp cannot be used together`);
    if (text !== undefined) return exactly(text);
    return pattern === undefined ? undefined : expression(pattern, `--${option}-regexp`);
  };
  const [identity, issuer] = [match("identity"), match("issuer")];
  if (values.text("key") !== undefined) {
    if (identity === undefined && issuer === undefined) return undefined;
    throw usageError(
      "--key has no identity and no issuer",
      "A signature is by a key, or by an identity that a certificate names.",
    );
  }
  if (identity !== undefined && issuer !== undefined) return { identity, issuer };
  throw usageError(
    identity === undefined && issuer === undefined
      ? "whose signature counts is not given"
      : `--${identity === undefined ? "identity" : "issuer"} is missing: one without the other says nothing for certain`,
    "Give --identity and --issuer, each as text or with -regexp, or --key FILE.",
  );
}

async function readKey(place: string | undefined, runtime: Runtime): Promise<string | undefined> {
  if (place === undefined) return undefined;
  const text = await readSmall(place, `--key ${place}`, runtime);
  try {
    // A private key would do, but has no place where images are only verified.
    if (!/PRIVATE KEY-----/.test(text))
      return createPublicKey(text).export({ type: "spki", format: "pem" }).toString();
  } catch {
    // The same as another kind of file.
  }
  throw usageError(`--key: ${place} is not a public key in PEM`, "It is a cosign.pub, for example.");
}
