"""sagemaker_data_capture: chats that an endpoint captured, with the times of their requests."""
