/** The proxy that this machine uses for its own connections, by the variables that Go, and so skopeo, reads. */

import { BlockList, connect, isIP, isIPv6, type Socket } from "node:net";
import { connect as connectWithTls } from "node:tls";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";

/** The destination of a connection through a proxy. */
interface Destination {
  /** Written as in a URL: an IPv6 address is in brackets. */
  host: string;
  port: number;
  /** True for a connection that the client encrypts itself. */
  isTunnel: boolean;
}

export interface MachineProxy {
  connect(): Socket;
  /** Lines for the head of each request. */
  authorization: readonly string[];
}

/** Returns the proxy for a destination; `undefined` if the machine connects to it directly. Throws for an unsupported proxy. */
export function machineProxy(destination: Destination, environment: Environment): MachineProxy | undefined {
  const text = variable(destination.isTunnel ? "HTTPS_PROXY" : "HTTP_PROXY", environment);
  if (text === "" || isExcepted(destination, variable("NO_PROXY", environment))) return undefined;
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw new BoughError(
      "this machine's proxy is not one of HTTP, so it is unknown where a client of this server makes it connect to: `bough serve --allow-local-fetch` allows any address",
    );
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const login = `${decode(url.username)}:${decode(url.password)}`;
  return {
    connect: () =>
      url.protocol === "http:"
        ? connect(Number(url.port || 80), host)
        : connectWithTls({
            host,
            port: Number(url.port || 443),
            ...(isIP(host) ? {} : { servername: host }),
          }),
    authorization:
      login === ":" ? [] : [`Proxy-Authorization: Basic ${Buffer.from(login).toString("base64")}`],
  };
}

/** Decodes a part of a URL. A login with a bare `%` is not encoded. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function variable(name: string, environment: Environment): string {
  return environment[name] || environment[name.toLowerCase()] || "";
}

/** Returns true if `NO_PROXY` names the host, a domain above it, or a network of its address. */
function isExcepted({ host: written, port }: Destination, noProxy: string): boolean {
  const host = written.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return noProxy
    .toLowerCase()
    .split(",")
    .map((entry) => entry.trim())
    .some((entry) => {
      if (entry === "*") return true;
      const [, network = "", bits = ""] = /^([\d.]+|[\da-f:]+)\/(\d+)$/.exec(entry) ?? [];
      if (isIP(network) !== 0) return isIP(host) !== 0 && isWithin(host, network, Number(bits));
      const [, name = entry, onlyPort = ""] = isIPv6(entry) ? [] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []);
      if (onlyPort !== "" && Number(onlyPort) !== port) return false;
      const domain = name.replace(/^\[(.*)\]$/, "$1").replace(/^\*?\./, "");
      return domain !== "" && ((host === domain && !/^\*?\./.test(name)) || host.endsWith(`.${domain}`));
    });
}

function isWithin(host: string, network: string, bits: number): boolean {
  const list = new BlockList();
  const kind = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4");
  if (bits > (isIPv6(network) ? 128 : 32)) return false;
  list.addSubnet(network, bits, kind(network));
  return list.check(host, kind(host));
}
