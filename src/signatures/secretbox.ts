/** NaCl's secretbox, XSalsa20 with Poly1305: https://nacl.cr.yp.to/secretbox.html. Only for keys, which are small. */
import { timingSafeEqual } from "node:crypto";

const tagBytes = 16;

/** Returns what is in a box; `undefined` if it was not made with this key. `nonce`: 24 bytes; `key`: 32. */
export function openSecretbox(box: Uint8Array, nonce: Uint8Array, key: Uint8Array): Uint8Array | undefined {
  const ciphertext = box.subarray(tagBytes);
  // The stream begins with the key of the tag.
  const stream = keyStream(key, nonce, 32 + ciphertext.length);
  const tag = box.subarray(0, tagBytes);
  if (tag.length < tagBytes || !timingSafeEqual(tag, poly1305(ciphertext, stream.subarray(0, 32))))
    return undefined;
  return ciphertext.map((byte, at) => byte ^ (stream[32 + at] ?? 0));
}

/** XSalsa20: https://cr.yp.to/snuffle/xsalsa-20110204.pdf */
function keyStream(key: Uint8Array, nonce: Uint8Array, length: number): Uint8Array {
  const block = core(key, nonce.subarray(0, 16));
  const subkey = pick(block, [0, 5, 10, 15, 6, 7, 8, 9]);
  const stream = new Uint8Array(Math.ceil(length / 64) * 64);
  const input = new Uint8Array(16);
  input.set(nonce.subarray(16));
  for (let at = 0; at < stream.length; at += 64) {
    new DataView(input.buffer).setUint32(8, at / 64, true);
    const words = core(subkey, input);
    const initial = initialState(subkey, input);
    const view = new DataView(stream.buffer, at);
    words.forEach((word, index) => {
      view.setUint32(index * 4, word + (initial[index] ?? 0), true);
    });
  }
  return stream;
}

function pick(words: Uint32Array, places: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(places.length * 4);
  const view = new DataView(bytes.buffer);
  places.forEach((place, index) => {
    view.setUint32(index * 4, words[place] ?? 0, true);
  });
  return bytes;
}

/** "expand 32-byte k", key and input in the places that Salsa20 gives them. */
function initialState(key: Uint8Array, input: Uint8Array): Uint32Array {
  const word = (bytes: Uint8Array, index: number) =>
    new DataView(bytes.buffer, bytes.byteOffset).getUint32(index * 4, true);
  const [k, n] = [(index: number) => word(key, index), (index: number) => word(input, index)];
  const [c0, c1, c2, c3] = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
  return Uint32Array.of(
    ...[c0, k(0), k(1), k(2), k(3), c1, n(0), n(1)],
    ...[n(2), n(3), c2, k(4), k(5), k(6), k(7), c3],
  );
}

/** The quarter-rounds of a double round of Salsa20: columns, then rows. */
const quarters = [
  [0, 4, 8, 12],
  [5, 9, 13, 1],
  [10, 14, 2, 6],
  [15, 3, 7, 11],
  [0, 1, 2, 3],
  [5, 6, 7, 4],
  [10, 11, 8, 9],
  [15, 12, 13, 14],
] as const;

/** The 20 rounds of Salsa20, without the addition at the end. */
function core(key: Uint8Array, input: Uint8Array): Uint32Array {
  const x = initialState(key, input);
  const at = (index: number) => x[index] ?? 0;
  const turn = (sum: number, by: number) => (sum << by) | (sum >>> (32 - by));
  for (let round = 0; round < 20; round += 2)
    for (const [a, b, c, d] of quarters) {
      x[b] = at(b) ^ turn((at(a) + at(d)) | 0, 7);
      x[c] = at(c) ^ turn((at(b) + at(a)) | 0, 9);
      x[d] = at(d) ^ turn((at(c) + at(b)) | 0, 13);
      x[a] = at(a) ^ turn((at(d) + at(c)) | 0, 18);
    }
  return x;
}

/** https://www.rfc-editor.org/rfc/rfc8439#section-2.5 */
function poly1305(message: Uint8Array, key: Uint8Array): Uint8Array {
  const number = (bytes: Uint8Array) =>
    [...bytes].reduceRight((total, byte) => (total << 8n) | BigInt(byte), 0n);
  const prime = (1n << 130n) - 5n;
  const r = number(key.subarray(0, 16)) & 0x0ffffffc0ffffffc0ffffffc0fffffffn;
  let total = 0n;
  for (let at = 0; at < message.length; at += 16) {
    const block = message.subarray(at, at + 16);
    total = ((total + number(block) + (1n << BigInt(8 * block.length))) * r) % prime;
  }
  const sum = total + number(key.subarray(16, 32));
  return Uint8Array.from({ length: tagBytes }, (_, index) => Number((sum >> BigInt(8 * index)) & 0xffn));
}
