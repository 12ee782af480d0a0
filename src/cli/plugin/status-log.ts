/**
 * Encodes the output of a build as BuildKit stores it: a length of 4 bytes, and a message of its API.
 * https://github.com/moby/buildkit/blob/master/api/services/control/control.proto
 */
import type { BuildRecord, BuildStep } from "../../history/build-record.ts";
import { digestOf } from "../../image/digest.ts";

/** @param read returns the output of a step */
export function encodeStatusLog(
  record: BuildRecord,
  read: (step: number) => string | undefined,
  nameOf: (step: BuildStep) => string,
): Uint8Array {
  const shown = record.steps.filter(({ counted }) => counted !== null);
  const status = Buffer.concat(
    shown.flatMap((step) => {
      const digest = digestOf(`${record.id} ${step.step} ${step.start}`);
      const at = (milliseconds: number) => timestamp(record.startedAt + milliseconds);
      const vertex = Buffer.concat([
        bytesField(1, digest),
        bytesField(3, nameOf(step)),
        ...(step.outcome === "cached" ? [numberField(4, 1)] : []),
        bytesField(5, at(step.start)),
        bytesField(6, at(step.end)),
        ...(step.outcome === "failed" ? [bytesField(7, record.error?.message ?? "failed")] : []),
      ]);
      const text = step.output === null ? undefined : read(step.step);
      if (text === undefined) return [bytesField(1, vertex)];
      const log = [
        bytesField(1, digest),
        bytesField(2, at(step.end)),
        numberField(3, 1),
        bytesField(4, text),
      ];
      return [bytesField(1, vertex), bytesField(3, Buffer.concat(log))];
    }),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32LE(status.byteLength);
  return Buffer.concat([length, status]);
}

/** https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp */
function timestamp(milliseconds: number): Uint8Array {
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = Math.floor((milliseconds - seconds * 1000) * 1e6);
  return Buffer.concat([numberField(1, seconds), numberField(2, nanos)]);
}

/** https://protobuf.dev/programming-guides/encoding/ */
function bytesField(field: number, content: Uint8Array | string): Uint8Array {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.byteLength), bytes]);
}

function numberField(field: number, value: number): Uint8Array {
  return Buffer.concat([varint(field * 8), varint(value)]);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Uint8Array.from([...bytes, rest]);
}
