import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CapturedStream } from "../../src/engine/processes/process-events.ts";
import { bytesOf, encodeBytes } from "../../src/service/wire/operation.ts";
import { runs } from "../support/random.ts";

function capture(chunks: readonly Uint8Array[], limit = 1_000_000) {
  const delivered: Uint8Array[] = [];
  const stream = new CapturedStream(limit, (chunk) => delivered.push(chunk));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  return { delivered, stream };
}

const bytes = (...values: number[]) => Uint8Array.from(values);

describe("a character that is split between writes is passed on in one chunk:", () => {
  test.each([
    ["two bytes", [bytes(0x61, 0xc3), bytes(0xa9)], ["a", "é"]],
    ["three bytes, one by one", [bytes(0xe2), bytes(0x82), bytes(0xac)], ["€"]],
    ["four bytes", [bytes(0xf0, 0x9f), bytes(0x8c, 0xb3, 0x21)], ["🌳!"]],
    ["invalid bytes are not held back", [bytes(0xff), bytes(0x61)], ["\ufffd", "a"]],
    ["an incomplete character at the end", [bytes(0x61, 0xe2, 0x82)], ["a", "\ufffd"]],
  ])("%s", (_name, chunks, texts) => {
    const { delivered } = capture(chunks);
    expect(delivered.map((chunk) => new TextDecoder().decode(chunk))).toEqual(texts);
  });
});

test("text in any chunks is passed on as the same text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.array(fc.nat(5), { maxLength: 60 }),
      (text, cuts) => {
        const whole = new TextEncoder().encode(text);
        const chunks: Uint8Array[] = [];
        let position = 0;
        for (const cut of cuts) {
          chunks.push(whole.subarray(position, position + cut));
          position += cut;
        }
        const { delivered } = capture([...chunks, whole.subarray(position)]);
        expect(
          delivered.map((chunk) => new TextDecoder("utf-8", { fatal: true }).decode(chunk)).join(""),
        ).toBe(new TextDecoder("utf-8", { fatal: true }).decode(whole));
      },
    ),
    { numRuns: runs(300) },
  );
});

test("a limit cuts before a character, and drops everything after it", () => {
  const { delivered, stream } = capture([new TextEncoder().encode("ab€"), new TextEncoder().encode("c")], 4);
  expect(Buffer.concat(delivered).toString()).toBe("ab");
  expect([stream.emittedBytes, stream.droppedBytes]).toEqual([2, 4]);
  expect(stream.toWire()).toEqual({ value: "ab", encoding: "ascii", truncated: true });
});

test("ASCII is sent as text and other bytes in base64", () => {
  expect(encodeBytes(bytes(0x68, 0x69, 0x0a))).toEqual({ value: "hi\n", encoding: "ascii" });
  expect(encodeBytes(bytes(0xc3, 0xa9))).toEqual({ value: "w6k=", encoding: "base64" });
  expect([...bytesOf({ value: "é", encoding: "utf-8" })]).toEqual([0xc3, 0xa9]);
  expect([...bytesOf({ value: "w6k=", encoding: "base64" })]).toEqual([0xc3, 0xa9]);
});
