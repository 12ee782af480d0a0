/** Tokens by which a pipeline proves who it is to a certificate authority: https://docs.sigstore.dev/cosign/signing/overview/ */

import { usageError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { Secret } from "../secret.ts";
import { asRecord, asText, parseRecord } from "../service/http/json.ts";
import { createSigningService, requireServiceAddress, type ServiceDependencies } from "./signing-service.ts";

/** Whom a token is made for: certificate authorities of Sigstore refuse others. */
const audience = "sigstore";

export type TokenSource =
  | { kind: "given"; token: Secret }
  /** GitHub makes a token for whoever asks. It is valid for minutes, so that it is fetched when it is needed. */
  | { kind: "github"; url: string; requestToken: Secret };

/** Finds what GitHub's and GitLab's pipelines set. Throws if there is nothing. */
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

/** An identity token, and what the key that it is for has to sign. */
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

/** Reads who a token is for, as certificate authorities do. https://www.rfc-editor.org/rfc/rfc7519 */
export function readToken(token: Secret): IdentityToken {
  const claims = asRecord(parseRecord(Buffer.from(token.text().split(".")[1] ?? "", "base64url")));
  const email = claims?.email_verified === true ? asText(claims.email) : undefined;
  const subject = email ?? asText(claims?.sub);
  if (subject !== undefined) return { token, subject };
  throw usageError(
    "the identity token to sign with is not a JSON Web Token with a subject",
    "It is that of SIGSTORE_ID_TOKEN, or of token=FILE.",
  );
}
