// The formats of exports by what takes them, as importer/exports has them.

export const LOCALAI = ["localai-gallery", "localai"];
export const CLUSTERS = ["compose", "kserve", "llm-d", "kubernetes", "kubernetes-job", "kaito", "ray-serve", "gpustack", "kubeai", "llama-swap"];
export const ENGINES = {
  vllm: ["vllm-command", "vllm-config", "vllm-recipe"], sglang: ["sglang-command", "sglang-config"], mlx: ["mlx-command"],
  "mlx-vlm": ["mlx-vlm-command"], "vllm-mlx": ["vllm-mlx-command"],
};

// The formats for a document of this backend, by their groups.
export const groups = (backend) => ({ localai: LOCALAI, engine: ENGINES[backend] ?? [], clusters: CLUSTERS });
