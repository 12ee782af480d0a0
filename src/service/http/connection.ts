import { DeadlineError } from "./deadline.ts";
import { asRecord, asText } from "./json.ts";

/** The reason why a call got no usable response, and what to do about it. */
interface ConnectionFault {
  reason: string;
  /** The next step for the user. */
  hint: string;
  /** False if the request provably never reached the service. */
  received: boolean;
  /** True if another attempt can't help. */
  permanent: boolean;
}

const neverReached: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "unknown host",
  EAI_AGAIN: "the host's name cannot be resolved at the moment",
  EHOSTUNREACH: "host unreachable",
  ENETUNREACH: "network unreachable",
};

/** Hints for certificates that are invalid even if their authority is trusted. */
const certificateHints: Record<string, string> = {
  CERT_HAS_EXPIRED:
    "It has expired, unless this machine's clock is wrong: correct the clock, or have the certificate renewed.",
  CERT_NOT_YET_VALID: "It is not valid yet: check this machine's clock.",
  ERR_TLS_CERT_ALTNAME_INVALID: "It is for another host: check the address.",
};

export const proxyHint =
  "Check the proxy in HTTPS_PROXY or HTTP_PROXY: with a user, it is http://USER:PASSWORD@HOST:PORT. NO_PROXY names hosts without it.";
const tryAgain = "Check the network between this machine and the service, and run the command again.";

/** Explains an error of fetch, however it is wrapped. The text includes no header and no body. */
export function explainFault(error: unknown): ConnectionFault {
  const origin = rootOf(error);
  const transient = (reason: string) => ({ reason, hint: tryAgain, received: true, permanent: false });
  if (origin instanceof DeadlineError) return transient(origin.message);
  if (origin instanceof Error && origin.name === "TimeoutError")
    return transient("no data passed over the connection for minutes");
  const code = asText(asRecord(origin)?.code) ?? "";
  const known = neverReached[code];
  if (known !== undefined) {
    const hint = "Check the address, and that the service is running.";
    return { reason: known, hint, received: false, permanent: false };
  }
  if (code === "ERR_PROXY_TUNNEL") {
    // A proxy that refuses for good responds with 4xx.
    const permanent = / 4\d\d( |$)/.test(messageIn(origin));
    return { reason: messageIn(origin), hint: proxyHint, received: false, permanent };
  }
  if (isCertificateCode(code)) {
    return {
      reason: `the server's certificate is not accepted (${code})`,
      hint:
        certificateHints[code] ??
        "Check the address. To trust your own certificate, set NODE_EXTRA_CA_CERTS=FILE.",
      received: false,
      permanent: true,
    };
  }
  if (code === "EPROTO") {
    const hint = "Check the address and its port: without TLS, an address begins with http://.";
    return { ...transient("the TLS handshake failed"), hint };
  }
  if (code === "ECONNRESET") return transient("the connection was closed before the answer was complete");
  if (code === "ZlibError" || /decompress/i.test(code))
    return transient("the response cannot be decompressed");
  return transient([messageIn(origin), code === "" ? "" : `(${code})`].filter(Boolean).join(" "));
}

/** Returns true for an error of fetch, however it is wrapped, if the server's certificate is not accepted. */
export function isCertificateFault(error: unknown): boolean {
  return isCertificateCode(asText(asRecord(rootOf(error))?.code) ?? "");
}

function isCertificateCode(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(code);
}

function messageIn(error: unknown): string {
  return (error instanceof Error ? error.message.split("\n", 1)[0] : undefined) ?? "the connection failed";
}

/** Returns the error that fetch threw, which ofetch wraps. */
function rootOf(error: unknown): unknown {
  let current = error;
  while (current instanceof Error && current.cause instanceof Error && !(current instanceof DeadlineError))
    current = current.cause;
  return current;
}
