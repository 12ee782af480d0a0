import { DeadlineError } from "./deadline.ts";
import { asRecord, asText } from "./json.ts";

export type ConnectionFaultKind = "refused" | "unknown host" | "unreachable" | "proxy" | "tls";

/** The reason why a call got no usable response, and what to do about it. */
interface ConnectionFault {
  /** `undefined` for a fault that asks for no remedy of its own. */
  kind?: ConnectionFaultKind;
  reason: string;
  /** The next step for the user. */
  hint: string;
  /** False if the request provably never reached the service. */
  received: boolean;
  /** True if another attempt can't help. */
  permanent: boolean;
}

const neverReached: Record<string, Required<Pick<ConnectionFault, "kind" | "reason">>> = {
  ECONNREFUSED: { kind: "refused", reason: "connection refused" },
  ENOTFOUND: { kind: "unknown host", reason: "unknown host" },
  EAI_AGAIN: { kind: "unknown host", reason: "the host's name cannot be resolved at the moment" },
  EHOSTUNREACH: { kind: "unreachable", reason: "host unreachable" },
  ENETUNREACH: { kind: "unreachable", reason: "network unreachable" },
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
  if (origin instanceof DeadlineError) return { ...transient(origin.message), kind: "unreachable" };
  if (origin instanceof Error && origin.name === "TimeoutError")
    return transient("no data passed over the connection for minutes");
  const code = asText(asRecord(origin)?.code) ?? "";
  const known = neverReached[code];
  if (known !== undefined) {
    const hint = "Check the address, and that the service is running.";
    return { ...known, hint, received: false, permanent: false };
  }
  if (code === "ERR_PROXY_TUNNEL") {
    // A proxy that refuses for good responds with 4xx.
    const permanent = / 4\d\d( |$)/.test(messageIn(origin));
    return { kind: "proxy", reason: messageIn(origin), hint: proxyHint, received: false, permanent };
  }
  if (isCertificateCode(code)) {
    return {
      kind: "tls",
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
    return { ...transient("the TLS handshake failed"), kind: "tls", hint };
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
