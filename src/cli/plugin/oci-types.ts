/** The Go types of docker buildx for images, whose fields templates name. */
import {
  anything,
  boolean,
  bytes,
  digest,
  type GoType,
  goMapOf,
  goString,
  integer,
  sliceOf,
  struct,
  timePointer,
} from "../../templates/schema.ts";

const texts = sliceOf(goString, "string");
const textMap = goMapOf(goString, "string");
const nothings = goMapOf(struct("struct {}", {}), "struct {}");

const platform = (isPointer: boolean) =>
  struct(
    "v1.Platform",
    {
      Architecture: [goString, "architecture"],
      OS: [goString, "os"],
      OSVersion: [goString, "os.version", "omitempty"],
      OSFeatures: [texts, "os.features", "omitempty"],
      Variant: [goString, "variant", "omitempty"],
    },
    isPointer,
  );

const descriptorOf = (name: string) =>
  struct(name, {
    MediaType: [goString, "mediaType"],
    Digest: [digest, "digest"],
    Size: [integer, "size"],
    URLs: [texts, "urls", "omitempty"],
    Annotations: [textMap, "annotations", "omitempty"],
    Data: [bytes, "data", "omitempty"],
    Platform: [platform(true), "platform", "omitempty"],
    ArtifactType: [goString, "artifactType", "omitempty"],
  });

/** The descriptor of an image, as the value of an `interface{}`. */
export const manifest = descriptorOf("interface {}");

/** An index with its own digest and size, as the value of an `interface{}`. */
export const index: GoType = struct("interface {}", {
  SchemaVersion: [integer, "schemaVersion"],
  MediaType: [goString, "mediaType", "omitempty"],
  Digest: [digest, "digest"],
  Size: [integer, "size"],
  Manifests: [sliceOf(descriptorOf("v1.Descriptor"), "v1.Descriptor"), "manifests"],
  Annotations: [textMap, "annotations", "omitempty"],
});

const imageConfig = struct("v1.ImageConfig", {
  User: [goString, "User", "omitempty"],
  ExposedPorts: [nothings, "ExposedPorts", "omitempty"],
  Env: [texts, "Env", "omitempty"],
  Entrypoint: [texts, "Entrypoint", "omitempty"],
  Cmd: [texts, "Cmd", "omitempty"],
  Volumes: [nothings, "Volumes", "omitempty"],
  WorkingDir: [goString, "WorkingDir", "omitempty"],
  Labels: [textMap, "Labels", "omitempty"],
  StopSignal: [goString, "StopSignal", "omitempty"],
  ArgsEscaped: [boolean, "ArgsEscaped", "omitempty"],
});

const history = struct("v1.History", {
  Created: [timePointer, "created", "omitempty"],
  CreatedBy: [goString, "created_by", "omitempty"],
  Author: [goString, "author", "omitempty"],
  Comment: [goString, "comment", "omitempty"],
  EmptyLayer: [boolean, "empty_layer", "omitempty"],
});

/** `*v1.Image`, an image's configuration. */
export const image: GoType = struct(
  "v1.Image",
  {
    Created: [timePointer, "created", "omitempty"],
    Author: [goString, "author", "omitempty"],
    Platform: [platform(false), undefined],
    Config: [imageConfig, "config", "omitempty"],
    RootFS: [
      struct("v1.RootFS", {
        Type: [goString, "type"],
        DiffIDs: [sliceOf(digest, "digest.Digest"), "diff_ids"],
      }),
      "rootfs",
    ],
    History: [sliceOf(history, "v1.History"), "history", "omitempty"],
  },
  true,
);

export const provenance: GoType = struct("imagetools.provenanceStub", {
  SLSA: [anything, "SLSA", "omitempty"],
});

export const sbom: GoType = struct("imagetools.sbomStub", {
  SPDX: [anything, "SPDX", "omitempty"],
  AdditionalSPDXs: [sliceOf(anything, "interface {}"), "AdditionalSPDXs", "omitempty"],
});
