/** Certificates with the times and extensions that a test wants: https://www.rfc-editor.org/rfc/rfc5280 */
import { createPrivateKey, type KeyObject, sign, X509Certificate } from "node:crypto";

interface CertificateFields {
  subject: string;
  publicKey: KeyObject;
  issuer: { subject: string; privateKey: KeyObject };
  from: Date;
  until: Date;
  /** Extensions in DER. */
  extensions: readonly Buffer[];
  serial: number;
}

/** Makes a certificate, signed with ECDSA on P-256 and SHA-256. */
export function makeX509(fields: CertificateFields): X509Certificate {
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const name = (common: string) =>
    sequence(der(0x31, sequence(oid("2.5.4.3"), der(0x0c, Buffer.from(common)))));
  const toBeSigned = sequence(
    der(0xa0, integer(2)),
    integer(fields.serial),
    algorithm,
    name(fields.issuer.subject),
    sequence(time(fields.from), time(fields.until)),
    name(fields.subject),
    Buffer.from(fields.publicKey.export({ type: "spki", format: "der" })),
    der(0xa3, sequence(...fields.extensions)),
  );
  const signature = sign("sha256", toBeSigned, createPrivateKey(pemOf(fields.issuer.privateKey)));
  const bits = der(0x03, Buffer.from([0]), signature);
  return new X509Certificate(sequence(toBeSigned, algorithm, bits));
}

export const extensions = {
  authority: () => extension("2.5.29.19", sequence(der(0x01, Buffer.from([0xff]))), true),
  signsCertificates: () => extension("2.5.29.15", der(0x03, Buffer.from([1, 0b110])), true),
  signsContents: () => extension("2.5.29.15", der(0x03, Buffer.from([7, 0x80])), true),
  codeSigning: () => extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.3"))),
  timeStamping: () => extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.8")), true),
  /** A URI, or an address of mail. */
  names: (identity: string) =>
    extension("2.5.29.17", sequence(der(/^\w+:/.test(identity) ? 0x86 : 0x81, Buffer.from(identity))), true),
  keyId: (id: Buffer) => extension("2.5.29.14", der(0x04, id)),
  authorityKeyId: (id: Buffer) => extension("2.5.29.35", sequence(der(0x80, id))),
  /** Fulcio's, for who has vouched for an identity. */
  issuer: (url: string) => extension("1.3.6.1.4.1.57264.1.8", der(0x0c, Buffer.from(url))),
};

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...critical, der(0x04, value));
}

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

function sequence(...contents: readonly Buffer[]): Buffer {
  return der(0x30, ...contents);
}

function integer(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return der(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const septets = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) septets.unshift((left & 0x7f) | 0x80);
    return septets;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, "")));
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
