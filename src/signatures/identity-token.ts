/** Tokens by which a pipeline proves its identity to a certificate authority: https://docs.sigstore.dev/cosign/signing/overview/ */

import { usageError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { Secret } from "../secret.ts";
import { asRecord, asText, parseRecord } from "../service/http/json.ts";
import { createSigningService, requireServiceAddress, type ServiceDependencies } from "./signing-service.ts";

/** The audience of a token. Certificate authorities of Sigstore reject others. */
const audience = "sigstore";

export type TokenSource =
  | { kind: "given"; token: Secret }
  /** GitHub issues a token on request. It is valid for minutes, so it is fetched when it is needed. */
  | { kind: "github"; url: string; requestToken: Secret };

/** Finds the token that GitHub's and GitLab's pipelines provide. Throws if there is none. */
export function findTokenSource(environment: Environment, option: string): TokenSource {
  const { SIGSTORE_ID_TOKEN, ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN } = environment;
  if (SIGSTORE_ID_TOKEN) return { kind: "given", token: readToken(Secret.of(SIGSTORE_ID_TOKEN)).token };
  if (ACTIONS_ID_TOKEN_REQUEST_URL && ACTIONS_ID_TOKEN_REQUEST_TOKEN)
    return {
      kind: "github",
      url: requireServiceAddress(ACTIONS_ID_TOKEN_REQUEST_URL, "ACTIONS_ID_TOKEN_REQUEST_URL"),
      requestToken: Secret.of(ACTIONS_ID_TOKEN_REQUEST_TOKEN),
    };
  const advice = environment.GITHUB_ACTIONS
    ? "Give the job `permissions: id-token: write`."
    : environment.GITLAB_CI
      ? "Give the job `id_tokens: SIGSTORE_ID_TOKEN: aud: sigstore`."
      : "GitHub's and GitLab's pipelines have one. Elsewhere, give key=FILE, or token=FILE with a token for the audience sigstore.";
  throw usageError(`${option}: there is no identity token to sign with`, advice);
}

/** An identity token, and the subject, which the certified key has to sign. */
export interface IdentityToken {
  token: Secret;
  subject: string;
}

export async function fetchToken(
  source: TokenSource,
  dependencies: ServiceDependencies,
  signal: AbortSignal,
): Promise<IdentityToken> {
  if (source.kind === "given") return readToken(source.token);
  const url = new URL(source.url);
  url.searchParams.set("audience", audience);
  const github = createSigningService(url.href, dependencies);
  const response = await github.get("", signal, `Bearer ${source.requestToken.text()}`);
  const token = asText(parseRecord(response.bytes)?.value);
  return readToken(Secret.of(token ?? github.fail(response)));
}

/** Reads the subject of a token, as certificate authorities do. https://www.rfc-editor.org/rfc/rfc7519 */
export function readToken(token: Secret): IdentityToken {
  const claims = asRecord(parseRecord(Buffer.from(token.text().split(".")[1] ?? "", "base64url")));
  const email = claims?.email_verified === true ? asText(claims.email) : undefined;
  const subject = email ?? asText(claims?.sub);
  if (subject !== undefined) return { token, subject };
  throw usageError(
    "the identity token to sign with is not a JSON Web Token with a subject",
    "Check SIGSTORE_ID_TOKEN, or the file of token=FILE.",
  );
}
