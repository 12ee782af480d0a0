import type { Instruction } from "../dockerfile/instruction.ts";
import type { CapturedOutput, OutputChunk } from "../service/service.ts";

/** What a build reports while it goes on. `output/` decides what a person or a program sees of it. */
export type BuildEvent =
  | { type: "step"; instruction: Instruction; step: number; steps: number }
  | { type: "warning"; message: string; line: number | undefined }
  | { type: "resolved"; reference: string; image: string }
  | { type: "importing"; reference: string; url: string }
  | { type: "cached"; title: string; layer: string; image: string }
  | { type: "staged"; title: string; files: number; bytes: number }
  | { type: "downloading"; url: string }
  | { type: "downloaded"; url: string; bytes: number; sha256: string }
  | { type: "url-cache-hit"; url: string }
  | { type: "uploading"; files: number; bytes: number }
  | { type: "uploaded"; files: number; sentBytes: number; reused: number }
  | { type: "forgotten-files"; files: number }
  | { type: "forgotten-layer"; layer: string; image: string }
  | { type: "spawned"; operation: string; title: string }
  | { type: "output"; chunk: OutputChunk }
  | { type: "ran"; operation: string; stdout: CapturedOutput; stderr: CapturedOutput }
  | { type: "cancelling"; operation: string }
  | { type: "cancelled"; operation: string; confirmed: boolean }
  | { type: "tagged"; image: string; tag: string };

export type Emit = (event: BuildEvent) => void;
