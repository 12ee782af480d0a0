/** The policy for signers: an identity and its issuer, each as text or as a regular expression. */
import { RE2JS } from "re2js";
import { usageError } from "../errors.ts";
import type { VerifiedSigner } from "./verify-bundle.ts";

export interface SignerPolicy {
  identity: Match;
  issuer: Match;
}

interface Match {
  matches(text: string): boolean;
  /** The text or expression, for messages. */
  shown: string;
}

export function exactly(text: string): Match {
  return { matches: (given) => given === text, shown: text };
}

/** Parses a regular expression of Go, as cosign does: it matches anywhere, unless it begins with `^` and ends with `$`. */
export function expression(text: string, option: string): Match {
  try {
    const compiled = RE2JS.compile(text);
    return { matches: (given) => compiled.matcher(given).find(), shown: `/${text}/` };
  } catch (error) {
    throw usageError(
      `${option}: ${JSON.stringify(text)} is not a regular expression: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** Returns why a signer does not match the policy; `undefined` if it does. */
export function reasonAgainst(
  { identity = "", issuer = "" }: Pick<VerifiedSigner, "identity" | "issuer">,
  wanted: SignerPolicy,
): string | undefined {
  if (!wanted.identity.matches(identity))
    return `it is by ${identity || "nobody that its certificate names"}, not by ${wanted.identity.shown}`;
  if (!wanted.issuer.matches(issuer))
    return `the identity ${identity} is vouched for by ${issuer || "nobody"}, not by ${wanted.issuer.shown}`;
  return undefined;
}
