read -rs NAS_API_KEY && export NAS_API_KEY
